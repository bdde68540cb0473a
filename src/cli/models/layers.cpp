#include "layers.h"

#include <ATen/ATen.h>

#include "brigade/random/distributions.h"
#include "brigade/random/initializers.h"

namespace brigade::cli {
namespace {

template <class Layer>
Layer with_values(Layer layer, const torch::Tensor& weight) {
  const at::NoGradGuard no_grad;
  layer->weight.copy_(weight);
  if (layer->bias.defined()) layer->bias.zero_();
  return layer;
}

torch::nn::Conv2d he_convolution(random::Key key, const torch::nn::Conv2dOptions& options) {
  torch::nn::Conv2d layer(options);
  return with_values(layer, random::he_normal(key, layer->weight.sizes(), random::kTorchFanAxes));
}

}  // namespace

torch::nn::Linear linear(random::Key key, std::int64_t inputs, std::int64_t outputs) {
  return with_values(torch::nn::Linear(inputs, outputs),
                     random::he_normal(key, {outputs, inputs}, random::kTorchFanAxes));
}

torch::nn::Linear linear_of_deviation(random::Key key, std::int64_t inputs, std::int64_t outputs, double deviation) {
  return with_values(torch::nn::Linear(inputs, outputs), random::normal(key, {outputs, inputs}) * deviation);
}

torch::nn::Conv2d convolution(random::Key key, std::int64_t inputs, std::int64_t outputs) {
  return he_convolution(key, torch::nn::Conv2dOptions(inputs, outputs, 3).padding(1));
}

torch::nn::Conv2d plain_convolution(random::Key key, std::int64_t inputs, std::int64_t outputs, std::int64_t size,
                                    std::int64_t stride) {
  return he_convolution(key,
                        torch::nn::Conv2dOptions(inputs, outputs, size).stride(stride).padding(size / 2).bias(false));
}

}  // namespace brigade::cli
