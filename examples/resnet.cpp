// A residual network on Fashion-MNIST whose batch normalisation sees all rows of the step, on whatever devices they are.
//
//   resnet [STEPS]
//
// With logical_shards its losses, and the running statistics that evaluation takes, are the same on 1 to 4 devices.
#include <brigade/brigade.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>

#include <cstdio>

#include "steps.h"

using namespace brigade;

torch::nn::Conv2d convolution(std::int64_t from, std::int64_t to, std::int64_t stride) {
  return torch::nn::Conv2d(torch::nn::Conv2dOptions(from, to, 3).stride(stride).padding(1).bias(false));
}

struct BlockImpl : torch::nn::Module {
  torch::nn::Conv2d conv1, conv2;
  nn::SyncBatchNorm norm1, norm2;  // in the place of torch::nn::BatchNorm2d

  explicit BlockImpl(std::int64_t channels)
      : conv1(convolution(channels, channels, 1)),
        conv2(convolution(channels, channels, 1)),
        norm1(channels),
        norm2(channels) {
    register_module("conv1", conv1);
    register_module("norm1", norm1);
    register_module("conv2", conv2);
    register_module("norm2", norm2);
  }

  torch::Tensor forward(const torch::Tensor& x) { return torch::relu(x + norm2(conv2(torch::relu(norm1(conv1(x)))))); }
};
TORCH_MODULE(Block);

struct ResNetImpl : torch::nn::Module {
  torch::nn::Conv2d first = convolution(1, 16, 2);
  nn::SyncBatchNorm norm{16};
  Block block1{16};
  torch::nn::Conv2d down = convolution(16, 32, 2);
  Block block2{32};
  torch::nn::Linear output{32, 10};

  ResNetImpl() {
    register_module("first", first);
    register_module("norm", norm);
    register_module("block1", block1);
    register_module("down", down);
    register_module("block2", block2);
    register_module("output", output);
  }

  torch::Tensor forward(const torch::Tensor& bytes) {
    auto x = data::normalize(bytes, data::kFashionMnistMean, data::kFashionMnistStd).unsqueeze(1);
    x = block1(torch::relu(norm(first(x))));
    return output(block2(torch::relu(down(x))).mean({2, 3}));
  }
};
TORCH_MODULE(ResNet);

void train(std::int64_t steps) {
  const data::Splits data = data::fashion_mnist();
  torch::manual_seed(0);
  DataParallel trainer(
      [] { return ResNet(); },
      {.optimizer = optim::sgd({.momentum = 0.9, .weight_decay = 5e-4}),
       .learning_rate = schedule::linear_scaling({.base = 0.05, .base_batch = 64}).warmup(steps / 10).cosine(steps),
       .groups = {optim::exempt_biases_and_norms()},
       .global_batch = 64,
       .logical_shards = 4});

  for (auto& batch : trainer.loader(data.train, {.epochs = 1 + steps / 938})) {
    const StepReport report = trainer.step(batch, [](ResNet& net, const data::Shard& rows) {
      return torch::cross_entropy_loss(net->forward(rows.x), rows.y);
    });
    if (report.step % 50 == 0) std::printf("step %ld: loss = %.4f\n", report.step, report.loss);
    if (trainer.steps() == steps) break;
  }

  const auto correct = trainer.evaluate(data.test, [](ResNet& net, const data::Dataset& rows) {
    return (net->forward(rows.x).argmax(1) == rows.y).sum();
  });
  std::printf("test accuracy: %.4f\n", correct.item<double>() / static_cast<double>(data.test.rows()));
}

int main(int argc, char** argv) {
  try {
    train(steps_from(argc, argv, 938));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "resnet: %s\n", error.what());
    return 1;
  }
}
