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
  // For a step of so many leaves. What was noted before is dropped.
  void open(std::int64_t leaves);

  // What was noted is of a part of a step, which go_on() with so many leaves more adds to: a part that was not kept gives way.
  void keep_part() noexcept { kept_ = updates_.size(); }
  void go_on(std::int64_t leaves);

  // Adds what was noted.
  void apply();

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
  std::vector<std::vector<RunningUpdate>> updates_;  // [leaf][call]
  std::size_t kept_ = 0;                             // leaves
};

}  // namespace brigade::training
