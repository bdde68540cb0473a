#include "brigade/optim/sgd.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <hwy/targets.h>
#include <torch/optim/sgd.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <tuple>
#include <vector>

#include "brigade/base/error.h"
#include "support/cases.h"
#include "support/errors.h"

namespace brigade::optim {
namespace {

// Every branch of the rule.
const std::vector<SgdOptions> kAllOptions = {
    {},
    {.weight_decay = 0.05},
    {.momentum = 0.9},
    {.momentum = 0.9, .dampening = 0.3, .weight_decay = 0.05},
    {.momentum = 0.8, .nesterov = true},
    {.momentum = 0.9, .weight_decay = 1e-4, .nesterov = true},
};

torch::Tensor numbers(at::IntArrayRef shape, int seed) {
  const std::int64_t count = c10::multiply_integers(shape);
  return (at::arange(count, at::kDouble) * 0.7 + seed * 1.3).sin().mul(2).reshape(shape).to(at::kFloat);
}

void expect_close(const torch::Tensor& actual, const torch::Tensor& expected) {
  EXPECT_TRUE(at::allclose(actual, expected, 1e-6, 1e-6)) << (actual - expected).abs().max();
}

std::vector<float> values_of(const torch::Tensor& t) {
  return std::vector<float>(t.data_ptr<float>(), t.data_ptr<float>() + t.numel());
}

// Parameters and velocity after three steps over spans of `count` elements, cut at `cut`.
std::vector<float> three_steps(SgdOptions options, std::int64_t count, std::size_t cut) {
  std::vector<float> parameters = values_of(numbers({count}, 0));
  std::vector<float> velocity(parameters.size(), std::numeric_limits<float>::quiet_NaN());
  const Sgd rule(options);
  for (std::int64_t step = 0; step < 3; ++step) {
    const std::vector<float> gradient = values_of(numbers({count}, static_cast<int>(step) + 1));
    const auto update = [&](std::size_t begin, std::size_t size) {
      rule.update(std::span(parameters).subspan(begin, size), std::span(gradient).subspan(begin, size),
                  std::span(velocity).subspan(begin, size), {.learning_rate = 0.1, .index = step});
    };
    update(0, cut);
    update(cut, parameters.size() - cut);
  }
  if (rule.state_buffers() != 0) parameters.insert(parameters.end(), velocity.begin(), velocity.end());
  return parameters;
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0);
}

// The rule written out, one rounding for each operator.
std::vector<float> three_steps_in_a_loop(SgdOptions options, std::int64_t count) {
  std::vector<float> parameters = values_of(numbers({count}, 0));
  std::vector<float> velocity(parameters.size());
  const auto momentum = static_cast<float>(options.momentum);
  for (int step = 0; step < 3; ++step) {
    const std::vector<float> gradient = values_of(numbers({count}, step + 1));
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      float g = gradient[i];
      if (options.weight_decay != 0) g += static_cast<float>(options.weight_decay) * parameters[i];
      if (momentum != 0) {
        velocity[i] = step == 0 ? g : momentum * velocity[i] + static_cast<float>(1 - options.dampening) * g;
        g = options.nesterov ? g + momentum * velocity[i] : velocity[i];
      }
      parameters[i] -= 0.1f * g;
    }
  }
  if (momentum != 0) parameters.insert(parameters.end(), velocity.begin(), velocity.end());
  return parameters;
}

class SgdOnTensors : public ::testing::TestWithParam<at::ScalarType> {};

TEST_P(SgdOnTensors, FollowsTorchStepByStep) {
  for (const SgdOptions& options : kAllOptions) {
    torch::Tensor theirs = numbers({7, 13}, 0).to(GetParam()).requires_grad_();
    torch::optim::SGD reference({theirs}, torch::optim::SGDOptions(0.1)
                                              .momentum(options.momentum)
                                              .dampening(options.dampening)
                                              .weight_decay(options.weight_decay)
                                              .nesterov(options.nesterov));
    const torch::Tensor ours = theirs.detach().clone();
    const torch::Tensor velocity = options.momentum != 0 ? at::full_like(ours, std::nan("")) : torch::Tensor();
    for (std::int64_t step = 0; step < 8; ++step) {
      const double rate = step < 4 ? 0.1 : 0.03;
      static_cast<torch::optim::SGDOptions&>(reference.param_groups()[0].options()).lr(rate);
      theirs.mutable_grad() = numbers({7, 13}, static_cast<int>(step) + 1).to(GetParam());
      reference.step();
      Sgd(options).update(ours, theirs.grad(), velocity, {.learning_rate = rate, .index = step});
      expect_close(ours.to(at::kDouble), theirs.detach().to(at::kDouble));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Dtypes, SgdOnTensors, ::testing::Values(at::kFloat, at::kDouble, at::kBFloat16),
                         [](const auto& dtype) { return c10::toString(dtype.param); });

TEST(Sgd, FollowsRecordedSteps) {
  for (const auto& [file, rules] : {std::pair<std::string, std::vector<std::string>>{"torch/optim.json", {"SGD"}},
                                    {"jax/optim.json", {"sgd", "momentum", "nesterov"}}}) {
    int checked = 0;
    const nlohmann::json content = cases::load(file);
    for (const nlohmann::json& recorded : content.at("cases")) {
      const auto name = recorded.value("rule", std::string());
      if (std::find(rules.begin(), rules.end(), name) == rules.end()) continue;
      if (recorded.contains("clip") && !recorded.at("clip").is_null()) continue;  // gradients were changed on their way
      ++checked;
      const nlohmann::json& args = recorded.at("args");
      const Sgd rule({.momentum = args.value("momentum", 0.0),
                      .dampening = args.value("dampening", 0.0),
                      .weight_decay = args.value("weight_decay", 0.0),
                      .nesterov = args.value("nesterov", false)});
      for (const auto& [parameter, start] : recorded.at("p0").items()) {
        const torch::Tensor p = cases::tensor_of(start);
        const torch::Tensor velocity = at::empty_like(p);
        const nlohmann::json& grads = recorded.at("grads");
        for (std::size_t step = 0; step < grads.size(); ++step) {
          rule.update(p, cases::tensor_of(grads[step].at(parameter)), velocity,
                      {.learning_rate = args.at("lr"), .index = static_cast<std::int64_t>(step)});
          expect_close(p, cases::tensor_of(recorded.at("params_after_step")[step].at(parameter)));
        }
      }
    }
    EXPECT_EQ(checked, 3) << file;
  }
}

class SgdInstructionSets : public ::testing::Test {
 protected:
  void TearDown() override { hwy::SetSupportedTargetsForTest(0); }
};

TEST_F(SgdInstructionSets, AllGiveTheBitsOfAPlainLoop) {
  std::size_t targets = 0;
  for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
    hwy::SetSupportedTargetsForTest(target);
    ++targets;
    for (const SgdOptions& options : kAllOptions) {
      for (const std::int64_t count : {0, 1, 3, 16, 1003}) {
        EXPECT_TRUE(same_bits(three_steps(options, count, 0), three_steps_in_a_loop(options, count)))
            << hwy::TargetName(target) << ", " << count << " elements";
      }
    }
  }
  EXPECT_GE(targets, 1u);
}

TEST(Sgd, BitsDoNotDependOnWhereASpanIsCut) {
  for (const SgdOptions& options : kAllOptions) {
    const auto whole = three_steps(options, 200, 0);
    for (std::size_t cut = 1; cut < 200; cut += 7) EXPECT_TRUE(same_bits(three_steps(options, 200, cut), whole)) << cut;
  }
}

TEST(Sgd, UpdatesTensorsOfAnyLayoutInPlace) {
  const Sgd rule({.momentum = 0.9, .weight_decay = 0.05});
  const torch::Tensor expected = numbers({4, 6}, 0);
  const torch::Tensor expected_velocity = at::zeros({4, 6});
  const torch::Tensor gradient = numbers({4, 6}, 1);
  rule.update(expected, gradient, expected_velocity, {.learning_rate = 0.1});
  const auto as_transposed = [](const torch::Tensor& t) { return t.t().contiguous().t(); };
  const auto as_slice = [](const torch::Tensor& t) { return at::cat({t, t}, 1).narrow(1, 0, t.size(1)); };
  for (const auto& [p, g, v] :
       {std::tuple{as_transposed(numbers({4, 6}, 0)), as_transposed(gradient), as_transposed(at::zeros({4, 6}))},
        std::tuple{as_transposed(numbers({4, 6}, 0)), gradient, at::zeros({4, 6})},
        std::tuple{as_slice(numbers({4, 6}, 0)), as_slice(gradient), as_slice(at::zeros({4, 6}))}}) {
    rule.update(p, g, v, {.learning_rate = 0.1});
    expect_close(p, expected);
    expect_close(v, expected_velocity);
  }
}

TEST(Sgd, UpdatesParametersThatRequireGradientsAndTellsAutograd) {
  const torch::Tensor p = numbers({5}, 0).requires_grad_();
  const torch::Tensor saved = (p * p).sum();
  Sgd().update(p, numbers({5}, 1), {}, {.learning_rate = 0.1});
  EXPECT_TRUE(p.is_leaf());
  EXPECT_THROW(saved.backward(), c10::Error) << "a backward through values that have changed must be refused";
}

TEST(Sgd, RefusesOptionsThatDoNotGoTogether) {
  EXPECT_ERROR(Sgd({.momentum = -0.1}), InvalidArgument, "momentum is -0.1");
  EXPECT_ERROR(Sgd({.momentum = std::nan("")}), InvalidArgument, "momentum is nan");
  EXPECT_ERROR(Sgd({.momentum = 0.9, .dampening = -1}), InvalidArgument, "dampening is -1");
  EXPECT_ERROR(Sgd({.weight_decay = -1}), InvalidArgument, "weight_decay is -1");
  EXPECT_ERROR(Sgd({.nesterov = true}), InvalidArgument, "needs a momentum above 0");
  EXPECT_ERROR(Sgd({.momentum = 0.9, .dampening = 0.1, .nesterov = true}), InvalidArgument, "they are 0.9 and 0.1");
}

TEST(Sgd, RefusesWhatDoesNotFitAndChangesNothing) {
  const Sgd rule({.momentum = 0.9});
  std::vector<float> p(4, 1), g(4, 1), v(4, 1), three(3, 1);
  EXPECT_ERROR(rule.update(p, three, v, {.learning_rate = 0.1}), ShapeError,
               "4 parameters, 3 gradients and 4 velocities");
  EXPECT_ERROR(rule.update(p, g, three, {.learning_rate = 0.1}), ShapeError, "3 velocities");
  EXPECT_ERROR(rule.update(p, g, {}, {.learning_rate = 0.1}), ShapeError, "0 velocities");
  EXPECT_ERROR(rule.update(p, g, v, {.learning_rate = -1}), InvalidArgument, "learning rate is -1");
  EXPECT_ERROR(rule.update(p, g, v, {.learning_rate = INFINITY}), InvalidArgument, "learning rate is inf");
  EXPECT_EQ(p, std::vector<float>(4, 1));
  EXPECT_EQ(v, std::vector<float>(4, 1));
  const torch::Tensor t = at::ones({2, 2});
  EXPECT_ERROR(rule.update(t, at::ones({4}), t, {}), ShapeError,
               "Float [2, 2] on cpu, their gradient is Float [4] on cpu");
  EXPECT_ERROR(rule.update(t, at::ones({2, 2}, at::kDouble), t, {}), ShapeError, "Double [2, 2]");
  EXPECT_ERROR(rule.update(t, t, torch::Tensor(), {}), ShapeError, "their velocity is undefined");
}

}  // namespace
}  // namespace brigade::optim
