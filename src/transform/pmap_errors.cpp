#include "brigade/transform/spmd_call.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "brigade/base/error.h"

namespace brigade::detail {
namespace {

// T(i, j) over values: the one order in which sums over devices are taken.
at::Tensor tree_sum(const std::vector<at::Tensor>& values, std::size_t first, std::size_t last) {
  if (last - first == 1) return values[first];
  const std::size_t half = std::bit_floor(last - first - 1);
  return tree_sum(values, first, first + half) + tree_sum(values, first + half, last);
}

}  // namespace

at::Tensor Input::at(int position) const {
  if (!per_device_.empty()) return per_device_[static_cast<std::size_t>(position)];
  return dim_ ? tensor_.select(*dim_, position) : tensor_;
}

at::Tensor Input::constant_at(int position) const {
  // A slice is a handle of its own already; others would let the body change the caller's.
  at::Tensor value = at(position);
  return dim_ && !value.requires_grad() ? value : value.detach();
}

bool Input::requires_grad() const {
  if (per_device_.empty()) return tensor_.requires_grad();
  return std::any_of(per_device_.begin(), per_device_.end(), [](const at::Tensor& t) { return t.requires_grad(); });
}

std::vector<at::Tensor> Input::tensors() const {
  return per_device_.empty() ? std::vector<at::Tensor>{tensor_} : per_device_;
}

std::vector<at::Tensor> Input::combine(const std::vector<at::Tensor>& gradients) const {
  if (!per_device_.empty()) return gradients;
  return {dim_ ? at::stack(gradients, *dim_) : tree_sum(gradients, 0, gradients.size())};
}

std::int64_t mapped_dim(const at::Tensor& tensor, int axis, const tree::Path& path, std::source_location site) {
  const std::int64_t rank = tensor.dim();
  if (axis < -rank || axis >= rank) {
    throw ShapeError(
        fmt::format(
            "a tensor of shape {} has no axis {} to map: give it that dimension, choose another in in_axes, or none to "
            "pass it whole",
            c10::str(tensor.sizes()), axis),
        {.argument = path.text(), .site = site});
  }
  return axis < 0 ? axis + rank : axis;
}

void throw_sizes_disagree(std::int64_t expected, const std::string& expected_from, const std::vector<SizeClaim>& claims,
                          const std::string& axis, std::source_location site) {
  std::string text = fmt::format("the mapped arguments do not all have size {} ({}) along their mapped axis:", expected,
                                 expected_from);
  std::string advice;
  for (const SizeClaim& claim : claims) {
    text +=
        fmt::format("\n  {}: {}, {}", claim.argument, claim.shape,
                    claim.size ? fmt::format("size {}{}", *claim.size, *claim.size == expected ? "" : "  <-- differs")
                               : "not mapped");
    if (advice.empty() && claim.size && *claim.size != expected && expected > 0) {
      advice = *claim.size % expected == 0
                   ? fmt::format("\nTo split {} rows of {} over {} devices, reshape them to ({}, {}, ...).",
                                 *claim.size, claim.argument, expected, expected, *claim.size / expected)
                   : fmt::format("\n{} devices do not divide the {} rows of {}: pad them to {} or leave {} out.",
                                 expected, *claim.size, claim.argument, (*claim.size / expected + 1) * expected,
                                 *claim.size % expected);
    }
  }
  throw ShapeError(text + advice + "\n", {.axis = axis, .site = site});
}

}  // namespace brigade::detail
