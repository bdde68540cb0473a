#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <cmath>
#include <string>
#include <string_view>
#include <vector>

#include "brigade/base/error.h"
#include "brigade/optim/block_sums.h"
#include "brigade/optim/rule.h"

namespace brigade::optim {
namespace {

std::string describe(const torch::Tensor& t) {
  if (!t.defined()) return "undefined";
  return fmt::format("{} [{}] on {}", c10::toString(t.scalar_type()), fmt::join(t.sizes(), ", "), t.device().str());
}

void check_alike(const Rule& rule, const torch::Tensor& parameters, std::string_view name, const torch::Tensor& other) {
  if (other.defined() && other.sizes() == parameters.sizes() && other.scalar_type() == parameters.scalar_type() &&
      other.device() == parameters.device()) {
    return;
  }
  throw ShapeError(
      fmt::format("{}: the parameters are {}, their {} is {}. Give tensors of one shape, dtype and device.",
                  rule.name(), describe(parameters), name, describe(other)));
}

void check_parameters(const Rule& rule, const torch::Tensor& t) {
  if (t.defined() && t.layout() == at::kStrided && t.device().is_cpu() &&
      (t.scalar_type() == at::kFloat || t.scalar_type() == at::kDouble)) {
    if (t.is_non_overlapping_and_dense()) return;
    throw ShapeError(
        fmt::format("{}: the parameters are {} with strides [{}], which leave gaps or overlap. Update the "
                    "tensor that they are a view of, or a contiguous() copy.",
                    rule.name(), describe(t), fmt::join(t.strides(), ", ")));
  }
  throw InvalidArgument(fmt::format(
      "{}: the parameters are {}{}. A rule updates dense float32 and float64 tensors on the CPU; for others "
      "use an optimizer of torch::optim.",
      rule.name(), describe(t), t.defined() && t.layout() != at::kStrided ? ", not dense" : ""));
}

// Writing through a pointer escapes autograd's check that what it saved is unchanged.
void mark_changed(const torch::Tensor& t) {
  if (!t.is_inference()) t.unsafeGetTensorImpl()->bump_version();
}

// Elements in the order of memory: of dense tensors with the same strides, the same element at the same place.
template <class T>
std::span<T> memory_of(const torch::Tensor& t) {
  return {t.data_ptr<T>(), static_cast<std::size_t>(t.numel())};
}

template <class T>
void update_dense(const Rule& rule, const torch::Tensor& parameters, const torch::Tensor& gradient,
                  std::span<const torch::Tensor> state, const Step& step) {
  std::array<std::span<T>, kMaxStateBuffers> buffers;
  for (std::size_t i = 0; i < state.size(); ++i) buffers[i] = memory_of<T>(state[i]);
  const Slice<T> slice = {.parameters = memory_of<T>(parameters),
                          .gradient = memory_of<T>(gradient),
                          .state = std::span(buffers).first(state.size())};
  if (!rule.layerwise()) return rule.update(slice, step);
  std::vector<double> sums(2 * block_count(slice.parameters.size()));
  const auto [of_parameters, of_direction] =
      std::pair(std::span(sums).first(sums.size() / 2), std::span(sums).subspan(sums.size() / 2));
  rule.direct(slice, step, {.parameters = of_parameters, .direction = of_direction});
  rule.apply(slice, step, rule.ratio(std::sqrt(tree_sum(of_parameters)), std::sqrt(tree_sum(of_direction))));
}

}  // namespace

void Rule::update(const torch::Tensor& parameters, const torch::Tensor& gradient, std::span<const torch::Tensor> state,
                  const Step& step) const {
  check_parameters(*this, parameters);
  check_alike(*this, parameters, "gradient", gradient);
  if (gradient.layout() != at::kStrided) {
    throw InvalidArgument(fmt::format("{}: the gradient is sparse: make it dense with to_dense().", name()));
  }
  if (state.size() != state_names().size()) {
    throw ShapeError(
        fmt::format("{}: the state of this rule is {} tensors, and {} were given; state_names() lists them.",
                    Rule::describe(), state_names().size(), state.size()));
  }
  for (std::size_t i = 0; i < state.size(); ++i) {
    check_alike(*this, parameters, state_names()[i], state[i]);
    if (state[i].strides() == parameters.strides()) continue;
    throw ShapeError(fmt::format("{}: the parameters have strides [{}], their {} has [{}]. Make it with empty_like().",
                                 name(), fmt::join(parameters.strides(), ", "), state_names()[i],
                                 fmt::join(state[i].strides(), ", ")));
  }
  const at::NoGradGuard no_grad;
  torch::Tensor dense = gradient;
  if (layerwise() || gradient.strides() != parameters.strides()) {
    dense = at::empty_strided(parameters.sizes(), parameters.strides(), gradient.options()).copy_(gradient);
  }
  if (parameters.scalar_type() == at::kFloat) {
    update_dense<float>(*this, parameters, dense, state, step);
  } else {
    update_dense<double>(*this, parameters, dense, state, step);
  }
  mark_changed(parameters);
  for (const torch::Tensor& buffer : state) mark_changed(buffer);
}

}  // namespace brigade::optim
