// A model without modules: a struct of tensors, nested as you like, and a function of it.
//
//   custom_struct [STEPS]
//
// A network of our own learns to imitate another one, which has been drawn at random: the rows are made up, so nothing is
// read. Groups give the biases a rate of their own, by the names that the members have: "hidden.bias".
#include <brigade/brigade.h>

#include <cmath>
#include <cstdio>

#include "steps.h"

using namespace brigade;

// Aggregates of tensors are trees; nothing to register.
struct Layer {
  torch::Tensor weight, bias;
};

struct Network {
  Layer hidden, output;
};

struct Rows {
  torch::Tensor x, y;
};

Layer make_layer(random::Key key, std::int64_t inputs, std::int64_t outputs) {
  return {random::normal(key, {inputs, outputs}) / std::sqrt(static_cast<double>(inputs)), torch::zeros({outputs})};
}

Network make_network(random::Key key, std::int64_t hidden) {
  auto [first, second] = random::split<2>(key);
  return {make_layer(first, 8, hidden), make_layer(second, hidden, 1)};
}

torch::Tensor apply(const Layer& layer, const torch::Tensor& x) { return torch::addmm(layer.bias, x, layer.weight); }

torch::Tensor predict(const Network& net, const torch::Tensor& x) {
  return apply(net.output, torch::tanh(apply(net.hidden, x)));
}

void train(std::int64_t steps) {
  const Network teacher = make_network(random::key(1), 4);
  DataParallel trainer(make_network(random::key(2), 32),  // each device has a copy
                       {.optimizer = optim::adam(),
                        .learning_rate = schedule::constant(0.01).cosine(steps),
                        .groups = {{.names = {"*.bias"}, .learning_rate = 0.5}},
                        .global_batch = 256,
                        .logical_shards = 8});

  for (std::int64_t step = 0; step < steps; ++step) {
    // Any tree of tensors is a batch; its leading dimension counts rows.
    const auto x = random::normal(random::fold_in(random::key(3), step), {256, 8});
    const StepReport report = trainer.step(Rows{x, predict(teacher, x)}, [](const Network& net, const Rows& rows) {
      return torch::mse_loss(predict(net, rows.x), rows.y);
    });
    if (step % (steps / 10 + 1) == 0) {
      std::printf("step %ld: loss = %.5f, norm of the gradient %.4f\n", step, report.loss, report.gradient_norm);
    }
  }

  // One number a row is averaged over rows of which each was seen once, whoever carried them.
  const auto x = random::normal(random::key(4), {1000, 8});
  const auto squares = trainer.evaluate(Rows{x, predict(teacher, x)}, [](const Network& net, const Rows& rows) {
    return (predict(net, rows.x) - rows.y).square().sum();
  });
  std::printf("error on new rows: %.5f\n", squares.item<double>() / 1000);
}

int main(int argc, char** argv) {
  try {
    train(steps_from(argc, argv, 1000));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "custom_struct: %s\n", error.what());
    return 1;
  }
}
