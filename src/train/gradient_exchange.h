// One device's side of the reduction of gradients: from what backward produces, leaf after leaf, to the sum over all leaves of
// all devices.
//
// A gradient that is complete in a leaf joins the partial sums of its parameter; in the device's last leaf the parameter is
// ready then, and a bucket whose parameters are all ready starts to be reduced while backward goes on. Buckets start in their
// order on every device. How often backward hands in a parameter's gradient before it is complete (several times, when it is
// used in several checkpointed segments) is learned from the step before; in the first step all are complete at its end.
//
// A step may be given in several parts. What a part has summed is kept apart until it is through, so that a part that fails
// leaves what the ones before it have summed.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <source_location>
#include <string>
#include <unordered_set>
#include <vector>

#include "brigade/comm/group.h"
#include "brigade/train/options.h"
#include "buckets.h"
#include "gradient_compression.h"
#include "layout.h"
#include "leaf_plan.h"
#include "leaf_sums.h"

namespace brigade::training {

// What the leaves of one call are of their step.
enum class Extent : std::uint8_t {
  kStep,  // all
  kPart,  // some: nothing is reduced yet
  kRest,  // the last ones. Each device's sum over all parts is one addend
};

class GradientExchange {
 public:
  // All outlive it. The reduced gradients go to `result`, which is one for all devices. Without `compression`, null, gradients are
  // summed as they are.
  GradientExchange(const Layout& layout, const Flat& result, comm::Group& group, GradientCompression* compression);
  ~GradientExchange();
  GradientExchange(const GradientExchange&) = delete;
  GradientExchange& operator=(const GradientExchange&) = delete;

  // A new call, in which this device carries `leaves`. What was left of the last one is dropped. `buckets` outlive the call.
  void begin(const Buckets& buckets, LeafRange leaves, Extent extent, Overlap overlap, std::source_location site);

  // The part that has run belongs to the step.
  void keep_part();
  // No part belongs to the next step.
  void drop_parts() noexcept;

  // From now on in this step, squares of every leaf's gradient are summed, for squared_norm().
  void measure_leaves();

  // Of the gradient of the loss summed over `leaf`, which this device carries. After finish(), when it was asked for.
  double squared_norm(std::int64_t leaf) const;

  // Nothing is reduced before the end of backward in this step.
  void hold_back() noexcept { overlap_ = Overlap::kOff; }

  // Backward of `leaf` has handed in a gradient. Throws InvalidArgument for one that is sparse, or comes after its bucket has
  // started.
  void arrived(std::int64_t leaf, std::size_t parameter, at::Tensor gradient);

  // Backward of `leaf` is through: what has not arrived counts as zeros.
  void end_leaf(std::int64_t leaf);

  // Returns when all buckets are reduced. On a device without leaves, too.
  void finish();

  // Of this step, after finish().
  bool has_gradient(std::size_t parameter) const noexcept {
    return parameters_[parameter].any || parameters_[parameter].any_kept;
  }
  std::span<const LeafSums::Part> parts(std::size_t parameter) const noexcept {
    return parameters_[parameter].sums.parts();
  }
  // The order in which parameters became complete in the device's last leaf.
  const std::vector<std::size_t>& order() const noexcept { return order_; }

 private:
  // One parameter's gradient in one leaf.
  struct Arriving {
    at::Tensor gradient = {};
    int arrivals = 0;
    bool complete = false;
  };

  struct Parameter {
    LeafSums sums = {};
    std::int64_t next_leaf = 0;  // to be added to the sums
    bool any = false;            // a gradient has arrived in some leaf
    at::Tensor kept = {};        // the sum over earlier parts; undefined when they had no leaf on this device
    bool any_kept = false;       // a gradient has arrived in some leaf of them
    int expected = 0;            // arrivals of a leaf; 0 while that is not known
  };

  struct Bucket;

  Arriving& at(std::int64_t leaf, std::size_t parameter) noexcept {
    return arriving_[static_cast<std::size_t>(leaf - leaves_.begin) * parameters_.size() + parameter];
  }
  // Where gradients of the leaf lie that have arrived.
  std::unordered_set<const void*>& memories_of(std::int64_t leaf) noexcept {
    return memories_[static_cast<std::size_t>(leaf - leaves_.begin)];
  }
  void measure(std::int64_t leaf, std::size_t parameter);
  void complete(std::int64_t leaf, std::size_t parameter);
  void is_ready(std::size_t parameter);
  void add_kept(Parameter& parameter) const;
  void start_ready_buckets();
  void start(std::size_t bucket);

  const Layout& layout_;
  const Flat& result_;
  comm::Group& group_;
  GradientCompression* const compression_;

  const Buckets* buckets_ = nullptr;
  LeafRange leaves_;
  Extent extent_ = Extent::kStep;
  Overlap overlap_ = Overlap::kOn;
  std::source_location site_;
  std::vector<Parameter> parameters_;
  std::vector<Arriving> arriving_;                         // [leaf of this device][parameter]
  std::vector<std::unordered_set<const void*>> memories_;  // [leaf of this device]
  std::vector<std::size_t> order_;
  std::vector<double> squares_;       // [leaf of this device][parameter]; empty when nobody asks
  std::vector<std::size_t> missing_;  // of each bucket, parameters that are not ready
  std::vector<std::unique_ptr<Bucket>> started_;
};

}  // namespace brigade::training
