// A convolutional network on Fashion-MNIST, the short way: a torch::nn module, a DataParallel, a loop.
//
//   fashion_cnn [STEPS]
//
// With logical_shards every line that it prints is the same on 1 to 8 devices: try BRIGADE_CPU_DEVICES=1, 2, 8.
#include <brigade/brigade.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>

#include <cstdio>

#include "steps.h"

using namespace brigade;

struct SmallCnnImpl : torch::nn::Module {
  torch::nn::Conv2d conv1{torch::nn::Conv2dOptions(1, 16, 3).padding(1)};
  torch::nn::Conv2d conv2{torch::nn::Conv2dOptions(16, 32, 3).padding(1)};
  torch::nn::Linear output{32 * 7 * 7, 10};

  SmallCnnImpl() {
    register_module("conv1", conv1);
    register_module("conv2", conv2);
    register_module("output", output);
  }

  torch::Tensor forward(const torch::Tensor& bytes) {
    auto x = data::normalize(bytes, data::kFashionMnistMean, data::kFashionMnistStd).unsqueeze(1);
    x = torch::max_pool2d(torch::relu(conv1(x)), 2);
    x = torch::max_pool2d(torch::relu(conv2(x)), 2);
    return output(x.flatten(1));
  }
};
TORCH_MODULE(SmallCnn);

void train(std::int64_t steps) {
  const data::Splits data = data::fashion_mnist();
  torch::manual_seed(0);  // of the layers' first values
  DataParallel trainer(
      [] { return SmallCnn(); },  // one replica per device, from the same start
      {.optimizer = optim::sgd({.momentum = 0.9, .weight_decay = 1e-4}),
       .learning_rate = schedule::linear_scaling({.base = 0.02, .base_batch = 64}).warmup(steps / 10).cosine(steps),
       .global_batch = 128,
       .logical_shards = 8});  // same bits on any number of devices up to 8

  for (auto& batch : trainer.loader(data.train, {.epochs = 1 + steps / 469, .prefetch = 2})) {
    const StepReport report = trainer.step(batch, [](SmallCnn& net, const data::Shard& rows) {
      return torch::cross_entropy_loss(net->forward(rows.x), rows.y);
    });
    if (report.step % 50 == 0) std::printf("step %ld: loss = %.4f\n", report.step, report.loss);
    if (trainer.steps() == steps) break;
  }

  const auto correct = trainer.evaluate(data.test, [](SmallCnn& net, const data::Dataset& rows) {
    return (net->forward(rows.x).argmax(1) == rows.y).sum();  // a sum over these rows; the trainer adds up the devices'
  });
  std::printf("test accuracy: %.4f\n", correct.item<double>() / static_cast<double>(data.test.rows()));
}

int main(int argc, char** argv) {
  try {
    train(steps_from(argc, argv, 1407));  // three passes over the data
  } catch (const std::exception& error) {
    std::fprintf(stderr, "fashion_cnn: %s\n", error.what());
    return 1;
  }
}
