// The reduction of a loss and its gradients that starts while backward still runs; value_and_grad takes it.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <source_location>
#include <string>
#include <utility>
#include <vector>

#include "brigade/comm/group.h"
#include "brigade/lax/leaves.h"
#include "brigade/runtime/axis.h"

namespace brigade::lax {

// How value_and_grad combines the devices of an axis. Made by reduce_mean and reduce_sum.
struct Reduction {
  enum class Combine : std::uint8_t { kSum, kMean };

  std::string axis = {};
  Combine combine = Combine::kMean;
  std::source_location site = {};  // for messages
};

// The average over the devices of `axis`, as pmean.
inline Reduction reduce_mean(std::string axis, std::source_location site = std::source_location::current()) {
  return {.axis = std::move(axis), .combine = Reduction::Combine::kMean, .site = site};
}

// The sum, as psum.
inline Reduction reduce_sum(std::string axis, std::source_location site = std::source_location::current()) {
  return {.axis = std::move(axis), .combine = Reduction::Combine::kSum, .site = site};
}

namespace detail {

// Gradients travel in buckets: the last leaves first, as backward produces those first, in pieces that together hold at
// least this many bytes. So the order of collectives is the same on all devices, whatever the order of arrival.
inline constexpr std::size_t kBucketBytes = std::size_t{256} * 1024;

// One device's part in one reduction. A bucket starts when all of its gradients have arrived and the buckets before it
// have started. Destroyed before finish() has returned, as when backward throws, it aborts the axis, and returns when
// nobody touches the gradients any more.
class GradientReduction {
 public:
  // Of gradients like `variables`. Throws AxisError when the axis is not in scope.
  GradientReduction(const Reduction& how, const Tensors& variables);
  GradientReduction(const GradientReduction&) = delete;
  GradientReduction& operator=(const GradientReduction&) = delete;

  // Before backward. When differentiable collectives were called since the construction, they will meet again in backward, and
  // where devices differ in which gradients they have, the order among both would differ: then buckets wait for finish().
  void set_loss(const at::Tensor& loss);

  // The gradient of variable `number` is complete. At most once for each.
  void arrived(std::size_t number, at::Tensor gradient);

  // After backward: the loss and all gradients, reduced. A gradient that has not arrived counts as zeros.
  std::pair<at::Tensor, Tensors> finish();

 private:
  struct Travelling {
    at::Tensor original;  // as it arrived
    at::Tensor in, out;   // what is reduced, and where to; one tensor, when the memory is nobody else's
  };

  struct Bucket {
    std::size_t first = 0, end = 0;  // of tensors_
    std::size_t missing = 0;
    std::string tag = {};
    std::optional<comm::Pending> pending = {};  // once started
  };

  // In the order in which they travel: the loss, then the variables from the last to the first.
  std::size_t index_of(std::size_t number) const noexcept { return tensors_.size() - 1 - number; }

  void put(std::size_t index, at::Tensor value);
  void start_complete_buckets();
  void start(Bucket& bucket);

  AxisPlace place_;
  comm::Reduction reduction_;
  std::source_location site_;
  std::uint64_t collectives_before_;
  bool overlapped_ = true;
  Tensors variables_;
  std::vector<Travelling> tensors_;
  std::vector<Bucket> buckets_;  // after tensors_, which what is pending reads and writes
  std::size_t started_ = 0;      // buckets
};

}  // namespace detail
}  // namespace brigade::lax
