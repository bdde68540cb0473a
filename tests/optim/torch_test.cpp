// Rules against torch::optim, step by step.
#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/optim/adagrad.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/rmsprop.h>
#include <torch/optim/sgd.h>

#include <cmath>
#include <vector>

#include "brigade/optim/adagrad.h"
#include "brigade/optim/adam.h"
#include "brigade/optim/rmsprop.h"
#include "brigade/optim/sgd.h"

namespace brigade::optim {
namespace torch_test {

torch::Tensor numbers(at::IntArrayRef shape, int seed, at::ScalarType dtype) {
  const std::int64_t count = c10::multiply_integers(shape);
  return (at::arange(count, at::kDouble) * 0.7 + seed * 1.3).sin().mul(2).reshape(shape).to(dtype);
}

// 50 steps on two tensors, whose learning rate falls to a third after 25.
template <class Optimizer, class Options>
void expect_torchs_steps(const Rule& rule, Options options, at::ScalarType dtype) {
  constexpr double kRate = 0.05;
  const std::vector<std::vector<std::int64_t>> shapes = {{7, 13}, {5}};
  std::vector<torch::Tensor> theirs;
  std::vector<torch::Tensor> ours;
  std::vector<std::vector<torch::Tensor>> state;
  for (std::size_t k = 0; k < shapes.size(); ++k) {
    ours.push_back(numbers(shapes[k], static_cast<int>(k), dtype));
    theirs.push_back(ours.back().clone().requires_grad_());
    state.emplace_back();
    for (std::size_t i = 0; i < rule.state_names().size(); ++i) {
      state.back().push_back(at::full_like(ours.back(), std::nan("")));
    }
  }
  options.lr(kRate);
  Optimizer optimizer(theirs, options);
  for (std::int64_t step = 0; step < 50; ++step) {
    const double rate = step < 25 ? kRate : kRate / 3;
    static_cast<Options&>(optimizer.param_groups()[0].options()).lr(rate);
    for (std::size_t k = 0; k < shapes.size(); ++k) {
      const torch::Tensor gradient = numbers(shapes[k], static_cast<int>(10 * k + step), dtype);
      theirs[k].mutable_grad() = gradient.clone();
      rule.update(ours[k], gradient, state[k], {.learning_rate = rate, .index = step});
    }
    optimizer.step();
    for (std::size_t k = 0; k < shapes.size(); ++k) {
      ASSERT_TRUE(at::allclose(ours[k], theirs[k].detach(), 1e-6, 1e-6))
          << rule.describe() << ", step " << step << ": " << (ours[k] - theirs[k].detach()).abs().max();
    }
  }
}

class TorchsSteps : public ::testing::TestWithParam<at::ScalarType> {};
INSTANTIATE_TEST_SUITE_P(Dtypes, TorchsSteps, ::testing::Values(at::kFloat, at::kDouble),
                         [](const auto& dtype) { return c10::toString(dtype.param); });

TEST_P(TorchsSteps, AreThoseOfSgd) {
  for (const SgdOptions& options : std::vector<SgdOptions>{
           {},
           {.weight_decay = 0.05},
           {.momentum = 0.9, .dampening = 0.3, .weight_decay = 0.05},
           {.momentum = 0.8, .weight_decay = 1e-3, .nesterov = true},
       }) {
    expect_torchs_steps<torch::optim::SGD>(sgd(options),
                                           torch::optim::SGDOptions(0)
                                               .momentum(options.momentum)
                                               .dampening(options.dampening)
                                               .weight_decay(options.weight_decay)
                                               .nesterov(options.nesterov),
                                           GetParam());
  }
}

TEST_P(TorchsSteps, AreThoseOfAdam) {
  for (const AdamOptions& options : std::vector<AdamOptions>{
           {},
           {.beta1 = 0.8, .beta2 = 0.95, .eps = 1e-5, .weight_decay = 0.1},
           {.beta1 = 0.5, .beta2 = 0.9, .amsgrad = true},
       }) {
    expect_torchs_steps<torch::optim::Adam>(adam(options),
                                            torch::optim::AdamOptions()
                                                .betas({options.beta1, options.beta2})
                                                .eps(options.eps)
                                                .weight_decay(options.weight_decay)
                                                .amsgrad(options.amsgrad),
                                            GetParam());
  }
}

TEST_P(TorchsSteps, AreThoseOfAdamW) {
  for (const AdamWOptions& options : std::vector<AdamWOptions>{
           {},
           {.beta1 = 0.8, .beta2 = 0.95, .eps = 1e-5, .weight_decay = 0.3},
           {.beta1 = 0.5, .beta2 = 0.9, .weight_decay = 0, .amsgrad = true},
       }) {
    expect_torchs_steps<torch::optim::AdamW>(adamw(options),
                                             torch::optim::AdamWOptions()
                                                 .betas({options.beta1, options.beta2})
                                                 .eps(options.eps)
                                                 .weight_decay(options.weight_decay)
                                                 .amsgrad(options.amsgrad),
                                             GetParam());
  }
}

TEST_P(TorchsSteps, AreThoseOfAdagrad) {
  for (const AdagradOptions& options : std::vector<AdagradOptions>{
           {},
           {.lr_decay = 0.02, .weight_decay = 0.05, .initial_accumulator_value = 0.1, .eps = 1e-6},
       }) {
    expect_torchs_steps<torch::optim::Adagrad>(adagrad(options),
                                               torch::optim::AdagradOptions()
                                                   .lr_decay(options.lr_decay)
                                                   .weight_decay(options.weight_decay)
                                                   .initial_accumulator_value(options.initial_accumulator_value)
                                                   .eps(options.eps),
                                               GetParam());
  }
}

TEST_P(TorchsSteps, AreThoseOfRmsprop) {
  for (const RmspropOptions& options : std::vector<RmspropOptions>{
           {},
           {.alpha = 0.9, .eps = 1e-6, .weight_decay = 0.05, .momentum = 0.8, .centered = true},
           {.alpha = 0.95, .momentum = 0.5},
           {.alpha = 0.8, .eps = 1e-4, .centered = true},
       }) {
    expect_torchs_steps<torch::optim::RMSprop>(rmsprop(options),
                                               torch::optim::RMSpropOptions()
                                                   .alpha(options.alpha)
                                                   .eps(options.eps)
                                                   .weight_decay(options.weight_decay)
                                                   .momentum(options.momentum)
                                                   .centered(options.centered),
                                               GetParam());
  }
}

}  // namespace torch_test
}  // namespace brigade::optim
