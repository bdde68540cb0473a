// An optimizer of libtorch on gradients that were averaged over the devices.
//
//   torch_optimizer [STEPS]
//
// The same perceptron is trained twice, by torch::optim::Adam and by optim::adam, and the losses stand side by side. The first
// way takes any optimizer that libtorch has, or one of yours; the second divides the update among the devices.
#include <brigade/brigade.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/adam.h>

#include <cstdio>

#include "steps.h"

using namespace brigade;

struct PerceptronImpl : torch::nn::Module {
  torch::nn::Linear hidden{784, 64}, output{64, 10};

  PerceptronImpl() {
    register_module("hidden", hidden);
    register_module("output", output);
  }

  torch::Tensor forward(const torch::Tensor& bytes) {
    const auto x = data::normalize(bytes, data::kFashionMnistMean, data::kFashionMnistStd);
    return output(torch::relu(hidden(x.flatten(1))));
  }
};
TORCH_MODULE(Perceptron);

std::vector<double> losses_of(DataParallelOptions options, const data::Dataset& dataset, std::int64_t steps) {
  torch::manual_seed(0);
  options.learning_rate = schedule::constant(1e-3);  // for either; libtorch's own rate is replaced by it
  options.global_batch = 128;
  options.logical_shards = 8;
  DataParallel trainer([] { return Perceptron(); }, options);
  std::vector<double> losses;
  for (auto& batch : trainer.loader(dataset, {.epochs = 1 + steps / 469})) {
    losses.push_back(trainer
                         .step(batch,
                               [](Perceptron& net, const data::Shard& rows) {
                                 return torch::cross_entropy_loss(net->forward(rows.x), rows.y);
                               })
                         .loss);
    if (trainer.steps() == steps) break;
  }
  return losses;
}

void train(std::int64_t steps) {
  const data::Dataset dataset = data::fashion_mnist().train;
  const auto by_torch = losses_of({.torch_optimizer =
                                       [](std::vector<torch::Tensor> parameters) {
                                         return std::make_unique<torch::optim::Adam>(
                                             std::move(parameters), torch::optim::AdamOptions().weight_decay(1e-4));
                                       }},
                                  dataset, steps);
  const auto by_rule = losses_of({.optimizer = optim::adam({.weight_decay = 1e-4})}, dataset, steps);
  for (std::size_t step = 0; step < by_torch.size(); step += by_torch.size() / 10 + 1) {
    std::printf("step %zu: loss = %.4f by torch::optim::Adam, %.4f by optim::adam\n", step, by_torch[step],
                by_rule[step]);
  }
}

int main(int argc, char** argv) {
  try {
    train(steps_from(argc, argv, 300));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "torch_optimizer: %s\n", error.what());
    return 1;
  }
}
