// The compiled part of one pmap call: its tensors, the errors about their sizes, and the graph that gradients take back.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <source_location>
#include <string>
#include <vector>

#include "brigade/runtime/axis.h"
#include "brigade/tree/path.h"

namespace brigade {

namespace detail {

// One tensor among the arguments, and what of it each device gets.
class Input {
 public:
  static Input split(at::Tensor tensor, std::int64_t dim) { return Input(std::move(tensor), dim); }
  static Input whole(at::Tensor tensor) { return Input(std::move(tensor), std::nullopt); }
  static Input per_device(std::vector<at::Tensor> tensors) { return Input(std::move(tensors)); }

  // What the device at `position` gets: a slice without its dimension, the whole, or its own. A view, no copy.
  at::Tensor at(int position) const;

  // The same for one that is not differentiated: without the caller's graph, and a handle of its own.
  at::Tensor constant_at(int position) const;

  bool requires_grad() const;

  // The tensors that gradients go back to: one, or one per device.
  std::vector<at::Tensor> tensors() const;

  // From each device's gradient of what it got to the gradients of tensors(): stacked, or summed in the fixed tree
  // order, or each its own. Differentiable.
  std::vector<at::Tensor> combine(const std::vector<at::Tensor>& gradients) const;

 private:
  Input(at::Tensor tensor, std::optional<std::int64_t> dim) : tensor_(std::move(tensor)), dim_(dim) {}
  explicit Input(std::vector<at::Tensor> tensors) : per_device_(std::move(tensors)) {}

  at::Tensor tensor_;
  std::optional<std::int64_t> dim_;
  std::vector<at::Tensor> per_device_;
};

// What one argument says about the number of devices, for the message when they disagree.
struct SizeClaim {
  std::string argument;              // path, such as `[0].w1`
  std::string shape;                 // "[4, 3]", or "Sharded over 4 devices"
  std::optional<std::int64_t> size;  // along its mapped axis; nullopt when it is not mapped
};

// Checks that the dimension exists and returns it counted from the front. Throws ShapeError with the path.
std::int64_t mapped_dim(const at::Tensor& tensor, int axis, const tree::Path& path, std::source_location site);

// Throws the error for arguments whose sizes along their mapped axes are not all `expected`, listing every one.
[[noreturn]] void throw_sizes_disagree(std::int64_t expected, const std::string& expected_from,
                                       const std::vector<SizeClaim>& claims, const std::string& axis,
                                       std::source_location site);

// Per-device leaves and results, [position][number].
using PerDevice = std::vector<std::vector<at::Tensor>>;

// The results of a call as the caller sees them: outside the devices' graphs, and differentiable with respect to
// `inputs` when these require grad. `leaves[d][k]` is the variable that stood for inputs[k] on device d,
// `results[d][j]` what came out of it. Backward runs the devices' backward passes together on `axis`, so collectives in
// it meet as they did forward. Derivatives of any order follow, as backward is such a call itself when it has to be
// differentiable.
PerDevice connect(std::shared_ptr<Axis> axis, std::vector<Input> inputs, PerDevice leaves, PerDevice results);

}  // namespace detail
}  // namespace brigade
