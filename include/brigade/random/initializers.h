// Initial values of weights, as jax.nn.initializers gives them.
//
//   auto w = random::he_normal(key, {784, 128});                            // JAX's layout: ..., in, out
//   auto c = random::he_normal(key, {64, 32, 3, 3}, random::kTorchFanAxes); // torch's layout: out, in, ...
//
// glorot: X. Glorot, Y. Bengio, AISTATS 2010. he: K. He et al., ICCV 2015. lecun: Y. LeCun et al., "Efficient
// BackProp", 1998.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>

#include "brigade/random/key.h"

namespace brigade::random {

// Which axes of a weight count inputs and outputs; a negative axis counts from the end. The sizes of all other axes
// multiply both (the receptive field of a convolution). The default is JAX's layout: dense [in, out], convolution
// [height, width, in, out].
struct FanAxes {
  std::int64_t in = -2;
  std::int64_t out = -1;
};

// Layout of torch's Linear and Conv weights: [out, in, height, width].
inline constexpr FanAxes kTorchFanAxes{.in = 1, .out = 0};

enum class Fan { kIn, kOut, kAverage };
enum class WeightDistribution {
  kUniform,
  kNormal,
  kTruncatedNormal
};  // the last is cut at 2 deviations, then rescaled

struct VarianceScaling {
  double scale = 1.0;
  Fan fan = Fan::kIn;
  WeightDistribution distribution = WeightDistribution::kTruncatedNormal;
  FanAxes axes = {};
};

// Weights of mean 0 and variance scale / fan. Throws ShapeError when `shape` has fewer than two axes or the axes are
// not two different ones of it, InvalidArgument for a scale that is not positive or a dtype other than kFloat and
// kDouble.
at::Tensor variance_scaling(Key key, at::IntArrayRef shape, const VarianceScaling& how,
                            at::ScalarType dtype = at::kFloat);

// Variance 2 / (fan_in + fan_out).
at::Tensor glorot_uniform(Key key, at::IntArrayRef shape, FanAxes axes = {}, at::ScalarType dtype = at::kFloat);
at::Tensor glorot_normal(Key key, at::IntArrayRef shape, FanAxes axes = {}, at::ScalarType dtype = at::kFloat);

// Variance 2 / fan_in: for layers followed by a ReLU.
at::Tensor he_uniform(Key key, at::IntArrayRef shape, FanAxes axes = {}, at::ScalarType dtype = at::kFloat);
at::Tensor he_normal(Key key, at::IntArrayRef shape, FanAxes axes = {}, at::ScalarType dtype = at::kFloat);

// Variance 1 / fan_in.
at::Tensor lecun_uniform(Key key, at::IntArrayRef shape, FanAxes axes = {}, at::ScalarType dtype = at::kFloat);
at::Tensor lecun_normal(Key key, at::IntArrayRef shape, FanAxes axes = {}, at::ScalarType dtype = at::kFloat);

}  // namespace brigade::random
