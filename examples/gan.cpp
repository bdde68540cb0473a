// A generative adversarial network: two models, each with a DataParallel of its own, in one program.
//
//   gan [STEPS]
//
// The generator turns noise into points of the plane, the discriminator says which points are real: those on a circle of
// radius 2. In the step of one model the other one is used as it is: `other.model()` is the replica of the device that runs
// the loss function, and gradients that reach it are nobody's.
//
// I. Goodfellow et al., "Generative adversarial nets", NeurIPS 2014.
#include <brigade/brigade.h>
#include <torch/nn/modules/linear.h>

#include <cstdio>

#include "steps.h"

using namespace brigade;

constexpr std::int64_t kBatch = 256;
constexpr std::int64_t kNoise = 4;
constexpr double kRadius = 2;

struct PerceptronImpl : torch::nn::Module {
  torch::nn::Linear first, second, last;

  PerceptronImpl(std::int64_t inputs, std::int64_t outputs) : first(inputs, 64), second(64, 64), last(64, outputs) {
    register_module("first", first);
    register_module("second", second);
    register_module("last", last);
  }

  torch::Tensor forward(const torch::Tensor& x) {
    return last(torch::leaky_relu(second(torch::leaky_relu(first(x), 0.2)), 0.2));
  }
};
TORCH_MODULE(Perceptron);

torch::Tensor points_on_circle(random::Key key) {
  const auto angle = random::uniform(key, {kBatch}, 0, 2 * M_PI);
  return kRadius * torch::stack({angle.cos(), angle.sin()}, 1);
}

// How surprised a judge is who takes these points for real, or for made up.
torch::Tensor real_loss(const torch::Tensor& scores) { return torch::softplus(-scores).mean(); }
torch::Tensor fake_loss(const torch::Tensor& scores) { return torch::softplus(scores).mean(); }

struct DiscriminatorRows {
  torch::Tensor points, noise;
};

struct GeneratorRows {
  torch::Tensor noise;
};

void train(std::int64_t steps) {
  torch::manual_seed(0);
  const DataParallelOptions options = {.optimizer = optim::adam({.beta1 = 0.5}),
                                       .learning_rate = schedule::constant(1e-3),
                                       .global_batch = kBatch,
                                       .logical_shards = 8};
  DataParallel generator([] { return Perceptron(kNoise, 2); }, options);
  DataParallel discriminator([] { return Perceptron(2, 1); }, options);

  for (std::int64_t step = 0; step < steps; ++step) {
    const auto [real, first, second] = random::split<3>(random::fold_in(random::key(0), step));
    const DiscriminatorRows shown = {points_on_circle(real), random::normal(first, {kBatch, kNoise})};
    const StepReport judged = discriminator.step(shown, [&](Perceptron& judge, const DiscriminatorRows& rows) {
      const auto made = generator.model()->forward(rows.noise).detach();
      return real_loss(judge->forward(rows.points)) + fake_loss(judge->forward(made));
    });
    const GeneratorRows drawn = {random::normal(second, {kBatch, kNoise})};
    const StepReport made = generator.step(drawn, [&](Perceptron& maker, const GeneratorRows& rows) {
      return real_loss(discriminator.model()->forward(maker->forward(rows.noise)));
    });
    if (step % (steps / 10 + 1) == 0) {
      std::printf("step %ld: discriminator %.4f, generator %.4f\n", step, judged.loss, made.loss);
    }
  }

  const GeneratorRows drawn = {random::normal(random::key(1), {2000, kNoise})};
  const auto distance = generator.evaluate(drawn, [](Perceptron& maker, const GeneratorRows& rows) {
    return (maker->forward(rows.noise).norm(2, 1) - kRadius).abs().sum();
  });
  std::printf("mean distance from the circle: %.3f\n", distance.item<double>() / 2000);
}

int main(int argc, char** argv) {
  try {
    train(steps_from(argc, argv, 1000));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "gan: %s\n", error.what());
    return 1;
  }
}
