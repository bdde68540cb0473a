#include "brigade/optim/sgd.h"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <string>
#include <string_view>

#include "brigade/base/error.h"
#include "optim/sgd_kernel.h"

namespace brigade::optim {
namespace {

void check_non_negative(std::string_view name, double value) {
  if (std::isfinite(value) && value >= 0) return;
  throw InvalidArgument(fmt::format("SGD: {} is {}: give a finite number, 0 or more.", name, value));
}

std::string describe(const torch::Tensor& t) {
  if (!t.defined()) return "undefined";
  return fmt::format("{} [{}] on {}", c10::toString(t.scalar_type()), fmt::join(t.sizes(), ", "), t.device().str());
}

void check_alike(const torch::Tensor& parameters, std::string_view name, const torch::Tensor& other) {
  if (parameters.defined() && other.defined() && parameters.sizes() == other.sizes() &&
      parameters.scalar_type() == other.scalar_type() && parameters.device() == other.device()) {
    return;
  }
  throw ShapeError(
      fmt::format("SGD: the parameters are {}, their {} is {}. Give tensors of one shape, dtype and device.",
                  describe(parameters), name, describe(other)));
}

bool is_dense_float(const torch::Tensor& t) {
  return t.layout() == at::kStrided && t.device().is_cpu() && t.scalar_type() == at::kFloat &&
         t.is_non_overlapping_and_dense();
}

// Elements in the order of memory; of two tensors with the same dense strides, the same element at the same place.
std::span<float> memory_of(const torch::Tensor& t) {
  return {t.data_ptr<float>(), static_cast<std::size_t>(t.numel())};
}

// Writing through a pointer escapes autograd's check that what it saved is unchanged.
void mark_changed(const torch::Tensor& t) {
  if (!t.is_inference()) t.unsafeGetTensorImpl()->bump_version();
}

}  // namespace

Sgd::Sgd(SgdOptions options) : options_(options) {
  check_non_negative("momentum", options.momentum);
  check_non_negative("weight_decay", options.weight_decay);
  check_non_negative("dampening", options.dampening);
  if (options.nesterov && (options.momentum == 0 || options.dampening != 0)) {
    throw InvalidArgument(
        fmt::format("SGD: Nesterov's form needs a momentum above 0 and no dampening; they are {} and {}.",
                    options.momentum, options.dampening));
  }
}

void Sgd::update(std::span<float> parameters, std::span<const float> gradient, std::span<float> velocity,
                 Step step) const {
  check_non_negative("the learning rate", step.learning_rate);
  const std::size_t count = parameters.size();
  if (gradient.size() != count || (velocity.size() != count && (state_buffers() != 0 || !velocity.empty()))) {
    throw ShapeError(fmt::format("SGD: {} parameters, {} gradients and {} velocities. Give spans of one length.", count,
                                 gradient.size(), velocity.size()));
  }
  const kernels::SgdFactors factors{.learning_rate = static_cast<float>(step.learning_rate),
                                    .momentum = static_cast<float>(options_.momentum),
                                    .gradient_share = static_cast<float>(1 - options_.dampening),
                                    .weight_decay = static_cast<float>(options_.weight_decay),
                                    .nesterov = options_.nesterov,
                                    .first = step.index == 0};
  kernels::sgd(factors, count, parameters.data(), gradient.data(), state_buffers() != 0 ? velocity.data() : nullptr);
}

void Sgd::update(const torch::Tensor& parameters, const torch::Tensor& gradient, const torch::Tensor& velocity,
                 Step step) const {
  check_non_negative("the learning rate", step.learning_rate);
  const bool has_velocity = state_buffers() != 0;
  check_alike(parameters, "gradient", gradient);
  if (has_velocity) check_alike(parameters, "velocity", velocity);
  const auto same_memory = [&](const torch::Tensor& t) {
    return is_dense_float(t) && t.strides() == parameters.strides();
  };
  if (same_memory(parameters) && same_memory(gradient) && (!has_velocity || same_memory(velocity))) {
    update(memory_of(parameters), memory_of(gradient), has_velocity ? memory_of(velocity) : std::span<float>(), step);
    mark_changed(parameters);
    if (has_velocity) mark_changed(velocity);
    return;
  }
  const at::NoGradGuard no_grad;
  torch::Tensor direction = gradient;
  if (options_.weight_decay != 0) direction = direction.add(parameters, options_.weight_decay);
  if (has_velocity) {
    if (step.index == 0) {
      velocity.copy_(direction);
    } else {
      velocity.mul_(options_.momentum).add_(direction, 1 - options_.dampening);
    }
    direction = options_.nesterov ? direction.add(velocity, options_.momentum) : velocity;
  }
  parameters.add_(direction, -step.learning_rate);
}

}  // namespace brigade::optim
