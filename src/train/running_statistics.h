// Running statistics of batch normalization: what the leaves of a step have to add to them, and the moment when it is added.
//
// Each replica has buffers of its own, and a leaf runs on any of them. So a leaf only notes the statistics of its group, in a place
// of its own; when the step has succeeded they enter the first replica's buffers, in the order of leaves, and those are copied to
// the others. The number of devices does not show, and a step that throws leaves nothing behind.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "brigade/train/replica.h"
#include "per_leaf.h"

namespace brigade::training {

// One batch, and what it is to be added to.
struct RunningUpdate {
  at::Tensor running_mean = {};  // float
  at::Tensor running_var = {};
  at::Tensor batches = {};  // int64
  std::optional<double> momentum = {};
  at::Tensor mean = {};  // of the batch, in float64
  at::Tensor unbiased_variance = {};

  // r = (1 - momentum) * r + momentum * new, rounded once; without a momentum it is 1 / batches.
  void apply() const;
};

class RunningStatistics {
 public:
  // As PerLeaf: what is noted lasts until the next open(), or longer for parts that are kept.
  void open(std::int64_t leaves) { updates_.open(leaves); }
  void keep_part() noexcept { updates_.keep_part(); }
  void drop_parts() noexcept { updates_.drop_parts(); }

  // Adds what was noted.
  void apply() const;

  // Makes record() on the calling thread note for `leaf`, which runs on `own`, while it lives. Buffers of `own` stand for those of
  // `first`; both outlive it.
  class Recording {
   public:
    Recording(RunningStatistics& statistics, std::int64_t leaf, const Replica& own, const Replica& first) noexcept;
    ~Recording();
    Recording(const Recording&) = delete;
    Recording& operator=(const Recording&) = delete;

   private:
    friend class RunningStatistics;
    at::Tensor of_first(const at::Tensor& buffer) const;

    std::vector<RunningUpdate>& updates_;
    const Replica& own_;
    const Replica& first_;
    Recording* outer_;
  };

  // Whether the calling thread's leaf has a Recording.
  static bool is_recording() noexcept;
  static void record(RunningUpdate update);

 private:
  PerLeaf<std::vector<RunningUpdate>> updates_;  // [leaf][call]
};

}  // namespace brigade::training
