#include "model.h"

#include <c10/util/accumulate.h>
#include <fmt/format.h>

#include "brigade/base/error.h"

namespace brigade::cli {
namespace {

// Weights of linear layers are (in, out); those of convolutions are torch's (out, in, height, width).
Layer linear_layer(const std::string& name, std::int64_t inputs, std::int64_t outputs) {
  return {.name = name, .weight = {inputs, outputs}, .outputs = outputs, .axes = {}};
}

Layer convolution_layer(const std::string& name, std::int64_t inputs, std::int64_t outputs) {
  return {.name = name, .weight = {outputs, inputs, 3, 3}, .outputs = outputs, .axes = random::kTorchFanAxes};
}

torch::Tensor linear(const Parameters& p, const std::string& layer, const torch::Tensor& x) {
  return torch::addmm(p.at(layer + ".bias"), x, p.at(layer + ".weight"));
}

torch::Tensor forward_mlp(const Parameters& p, const torch::Tensor& images) {
  return linear(p, "output", torch::relu(linear(p, "hidden", images.reshape({images.size(0), 784}))));
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
      {.name = "mlp",
       .shape = "784-128-10",
       .epochs = 5,
       .layers = {linear_layer("hidden", 784, 128), linear_layer("output", 128, 10)},
       .forward = forward_mlp},
      {.name = "cnn",
       .shape = "two 3x3 convolutions (32, 64), 3136-128-10",
       .epochs = 3,
       .layers = {convolution_layer("conv1", 1, 32), convolution_layer("conv2", 32, 64),
                  linear_layer("hidden", 3136, 128), linear_layer("output", 128, 10)},
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

std::int64_t count_parameters(const Model& model) {
  std::int64_t count = 0;
  for (const Layer& layer : model.layers) count += c10::multiply_integers(layer.weight) + layer.outputs;
  return count;
}

Parameters init_parameters(const Model& model, random::Key key) {
  const auto keys = random::split(key, static_cast<std::int64_t>(model.layers.size()));
  Parameters parameters;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const Layer& layer = model.layers[i];
    parameters[layer.name + ".weight"] = random::he_normal(keys[i], layer.weight, layer.axes);
    parameters[layer.name + ".bias"] = torch::zeros({layer.outputs});
  }
  return parameters;
}

}  // namespace brigade::cli
