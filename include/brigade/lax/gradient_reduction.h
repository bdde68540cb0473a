// The reduction of a loss and its gradients that starts while backward still runs; value_and_grad takes it.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <source_location>
#include <string>
#include <utility>
#include <vector>

#include "brigade/comm/group.h"
#include "brigade/lax/invocation.h"
#include "brigade/lax/leaves.h"
#include "brigade/runtime/axis_names.h"

namespace brigade::lax {

// How value_and_grad combines the devices of an axis, or of several axes of a mesh. Made by reduce_mean and reduce_sum.
struct Reduction {
  enum class Combine : std::uint8_t { kSum, kMean };

  std::vector<std::string> axes = {};
  Combine combine = Combine::kMean;
  Site site = {};  // for messages
};

// The average, as pmean.
Reduction reduce_mean(const AxisNames& axis, Site site = Site::current());

// The sum, as psum.
Reduction reduce_sum(const AxisNames& axis, Site site = Site::current());

namespace detail {

// Gradients travel in buckets: the last leaves first, as backward produces those first, in pieces that together hold at
// least this many bytes. So the order of collectives is the same on all devices, whatever the order of arrival.
inline constexpr std::size_t kBucketBytes = std::size_t{256} * 1024;

// One device's part in one reduction. A bucket starts when all of its gradients have arrived and the buckets before it
// have started. Destroyed before finish() has returned, as when backward throws, it aborts the axis, and returns when
// nobody touches the gradients any more.
class GradientReduction {
 public:
  // Of gradients like `variables`, which `path_of` names in messages. Throws as find_axis().
  GradientReduction(const Reduction& how, Tensors variables, std::function<std::string(std::size_t)> path_of);
  ~GradientReduction();
  GradientReduction(const GradientReduction&) = delete;
  GradientReduction& operator=(const GradientReduction&) = delete;

  // Before backward. When differentiable collectives were called since the construction, they will meet again in backward,
  // and where devices differ in which gradients they have, the order among both would differ: then buckets wait for
  // finish().
  void set_loss(const at::Tensor& loss);

  // The gradient of variable `number` is complete. At most once for each.
  void arrived(std::size_t number, at::Tensor gradient);

  // After backward: the loss and all gradients, reduced. A gradient that has not arrived counts as zeros.
  std::pair<at::Tensor, Tensors> finish();

 private:
  struct Bucket;

  void put(std::size_t index, at::Tensor value);
  void start_complete_buckets();
  void start(Bucket& bucket);
  void wait(Bucket& bucket);

  // Tensors travel in this order: the loss, then the variables from the last to the first.
  std::size_t index_of(std::size_t number) const noexcept { return variables_.size() - number; }

  Invocation call_;
  comm::Reduction reduction_;
  Tensors variables_;
  std::function<std::string(std::size_t)> path_of_;
  Tensors waiting_;  // arrived, and in no bucket that has started; undefined otherwise
  std::vector<std::unique_ptr<Bucket>> buckets_;
  std::size_t started_ = 0;  // buckets
  std::uint64_t collectives_before_;
  bool overlapped_ = true;
};

}  // namespace detail
}  // namespace brigade::lax
