#include "brigade/random/initializers.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>

#include "brigade/base/error.h"
#include "brigade/random/distributions.h"
#include "random/fill.h"

namespace brigade::random {
namespace {

constexpr std::string_view kName = "variance_scaling";

// Standard deviation of a normal cut at -2 and 2.
constexpr double kTruncatedDeviation = 0.87962566103423978;

std::size_t axis_of(at::IntArrayRef shape, std::int64_t axis, const char* what) {
  const auto rank = static_cast<std::int64_t>(shape.size());
  if (axis < -rank || axis >= rank) {
    throw ShapeError(fmt::format("random::{}: shape [{}] has no axis {} for the {}; set FanAxes", kName,
                                 fmt::join(shape.vec(), ", "), axis, what));
  }
  return static_cast<std::size_t>(axis < 0 ? axis + rank : axis);
}

// Number of inputs and outputs that one weight matrix connects, each times the receptive field.
double fan_of(at::IntArrayRef shape, const VarianceScaling& how) {
  if (shape.size() < 2) {
    throw ShapeError(
        fmt::format("random::{}: shape [{}] needs two or more axes, since the spread of a weight depends on how "
                    "many inputs and outputs it connects; start biases at zero",
                    kName, fmt::join(shape.vec(), ", ")));
  }
  const std::size_t in = axis_of(shape, how.axes.in, "inputs");
  const std::size_t out = axis_of(shape, how.axes.out, "outputs");
  if (in == out) {
    throw ShapeError(fmt::format("random::{}: axis {} of shape [{}] cannot count both inputs and outputs; set FanAxes",
                                 kName, in, fmt::join(shape.vec(), ", ")));
  }
  double receptive_field = 1.0;
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    if (axis != in && axis != out) receptive_field *= static_cast<double>(shape[axis]);
  }
  const double fan_in = static_cast<double>(shape[in]) * receptive_field;
  const double fan_out = static_cast<double>(shape[out]) * receptive_field;
  switch (how.fan) {
    case Fan::kIn:
      return fan_in;
    case Fan::kOut:
      return fan_out;
    case Fan::kAverage:
      break;
  }
  return (fan_in + fan_out) / 2.0;
}

// In the dtype of the weights, as JAX computes it.
template <class T>
T factor_of(double variance_of_weights, WeightDistribution distribution) {
  const T variance = static_cast<T>(variance_of_weights);
  switch (distribution) {
    case WeightDistribution::kUniform:
      return std::sqrt(T{3} * variance);
    case WeightDistribution::kNormal:
      return std::sqrt(variance);
    case WeightDistribution::kTruncatedNormal:
      break;
  }
  return std::sqrt(variance) / static_cast<T>(kTruncatedDeviation);
}

at::Tensor unscaled(Key key, at::IntArrayRef shape, WeightDistribution distribution, at::ScalarType dtype) {
  switch (distribution) {
    case WeightDistribution::kUniform:
      return uniform(key, shape, -1.0, 1.0, dtype);
    case WeightDistribution::kNormal:
      return normal(key, shape, dtype);
    case WeightDistribution::kTruncatedNormal:
      break;
  }
  return truncated_normal(key, -2.0, 2.0, shape, dtype);
}

}  // namespace

at::Tensor variance_scaling(Key key, at::IntArrayRef shape, const VarianceScaling& how, at::ScalarType dtype) {
  check_shape(kName, shape);
  check_floating(kName, dtype);
  if (!(how.scale > 0.0 && std::isfinite(how.scale))) {
    throw InvalidArgument(fmt::format("random::{}: the scale is {}; give a positive number", kName, how.scale));
  }
  const double fan = fan_of(shape, how);
  at::Tensor weights = unscaled(key, shape, how.distribution, dtype);
  if (weights.numel() == 0) return weights;  // and the fan may be 0
  const double factor = dtype == at::kFloat ? factor_of<float>(how.scale / fan, how.distribution)
                                            : factor_of<double>(how.scale / fan, how.distribution);
  return weights.mul_(factor);
}

at::Tensor glorot_uniform(Key key, at::IntArrayRef shape, FanAxes axes, at::ScalarType dtype) {
  return variance_scaling(key, shape, {1.0, Fan::kAverage, WeightDistribution::kUniform, axes}, dtype);
}
at::Tensor glorot_normal(Key key, at::IntArrayRef shape, FanAxes axes, at::ScalarType dtype) {
  return variance_scaling(key, shape, {1.0, Fan::kAverage, WeightDistribution::kTruncatedNormal, axes}, dtype);
}
at::Tensor he_uniform(Key key, at::IntArrayRef shape, FanAxes axes, at::ScalarType dtype) {
  return variance_scaling(key, shape, {2.0, Fan::kIn, WeightDistribution::kUniform, axes}, dtype);
}
at::Tensor he_normal(Key key, at::IntArrayRef shape, FanAxes axes, at::ScalarType dtype) {
  return variance_scaling(key, shape, {2.0, Fan::kIn, WeightDistribution::kTruncatedNormal, axes}, dtype);
}
at::Tensor lecun_uniform(Key key, at::IntArrayRef shape, FanAxes axes, at::ScalarType dtype) {
  return variance_scaling(key, shape, {1.0, Fan::kIn, WeightDistribution::kUniform, axes}, dtype);
}
at::Tensor lecun_normal(Key key, at::IntArrayRef shape, FanAxes axes, at::ScalarType dtype) {
  return variance_scaling(key, shape, {1.0, Fan::kIn, WeightDistribution::kTruncatedNormal, axes}, dtype);
}

}  // namespace brigade::random
