#include "model.h"

#include <fmt/format.h>

#include "brigade/base/error.h"
#include "brigade/random/initializers.h"

namespace brigade::cli {
namespace {

// Weights of linear layers are (in, out); those of convolutions are torch's (out, in, height, width).
constexpr random::FanAxes kConvolution{.in = 1, .out = 0};

Parameters init_mlp(random::Key key) {
  const auto [hidden, output] = random::split<2>(key);
  return {{"hidden.weight", random::he_normal(hidden, {784, 128})},
          {"hidden.bias", torch::zeros({128})},
          {"output.weight", random::he_normal(output, {128, 10})},
          {"output.bias", torch::zeros({10})}};
}

torch::Tensor linear(const Parameters& p, const std::string& layer, const torch::Tensor& x) {
  return torch::addmm(p.at(layer + ".bias"), x, p.at(layer + ".weight"));
}

torch::Tensor forward_mlp(const Parameters& p, const torch::Tensor& images) {
  return linear(p, "output", torch::relu(linear(p, "hidden", images.reshape({images.size(0), 784}))));
}

Parameters init_cnn(random::Key key) {
  const auto [first, second, hidden, output] = random::split<4>(key);
  return {{"conv1.weight", random::he_normal(first, {32, 1, 3, 3}, kConvolution)},
          {"conv1.bias", torch::zeros({32})},
          {"conv2.weight", random::he_normal(second, {64, 32, 3, 3}, kConvolution)},
          {"conv2.bias", torch::zeros({64})},
          {"hidden.weight", random::he_normal(hidden, {3136, 128})},
          {"hidden.bias", torch::zeros({128})},
          {"output.weight", random::he_normal(output, {128, 10})},
          {"output.bias", torch::zeros({10})}};
}

torch::Tensor conv_block(const Parameters& p, const std::string& layer, const torch::Tensor& x) {
  const auto convolved = torch::conv2d(x, p.at(layer + ".weight"), p.at(layer + ".bias"), /*stride=*/1, /*padding=*/1);
  return torch::max_pool2d(torch::relu(convolved), 2);
}

torch::Tensor forward_cnn(const Parameters& p, const torch::Tensor& images) {
  const auto pooled = conv_block(p, "conv2", conv_block(p, "conv1", images.reshape({images.size(0), 1, 28, 28})));
  return linear(p, "output", torch::relu(linear(p, "hidden", pooled.reshape({images.size(0), 3136}))));
}

}  // namespace

const std::vector<Model>& models() {
  static const std::vector<Model> all = {
      {.name = "mlp", .shape = "784-128-10", .epochs = 5, .init = init_mlp, .forward = forward_mlp},
      {.name = "cnn",
       .shape = "two 3x3 convolutions (32, 64), 3136-128-10",
       .epochs = 3,
       .init = init_cnn,
       .forward = forward_cnn},
  };
  return all;
}

const Model& model_named(const std::string& name) {
  std::vector<std::string> names;
  for (const Model& model : models()) {
    if (model.name == name) return model;
    names.push_back(model.name);
  }
  const std::string nearest = nearest_name(name, names);
  throw InvalidArgument(fmt::format("there is no model \"{}\"; there are {}{}", name, quoted_list(names),
                                    nearest.empty() ? "" : fmt::format(". Is \"{}\" meant?", nearest)));
}

std::int64_t count_elements(const Parameters& parameters) {
  std::int64_t count = 0;
  for (const auto& [name, tensor] : parameters) count += tensor.numel();
  return count;
}

}  // namespace brigade::cli
