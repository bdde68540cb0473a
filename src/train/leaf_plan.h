// How the rows of one step are cut into leaves, and leaves are dealt to devices.
//
// A leaf is one forward and one backward. Leaf l holds rows [l * b, (l + 1) * b) of the step, as far as there are rows;
// leaves without rows are not run. A device carries a contiguous range of leaves, so what it sums itself are subtrees of the
// tree over all leaves, and the bits do not depend on how many devices there are.
#pragma once

#include <algorithm>
#include <cstdint>

#include "brigade/data/sampler.h"

namespace brigade::training {

struct LeafRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;

  std::int64_t size() const noexcept { return end - begin; }
};

class LeafPlan {
 public:
  // For `rows` >= 1 of a step, `rows_per_leaf` >= 1 in each leaf but the last, dealt to `devices`.
  LeafPlan(std::int64_t rows, std::int64_t rows_per_leaf, int devices) noexcept
      : rows_(rows),
        rows_per_leaf_(rows_per_leaf),
        leaves_((rows + rows_per_leaf - 1) / rows_per_leaf),
        devices_(devices) {}

  std::int64_t rows() const noexcept { return rows_; }

  // Those that hold rows.
  std::int64_t leaves() const noexcept { return leaves_; }

  data::RowRange rows_of(std::int64_t leaf) const { return data::shard_range(rows_, rows_per_leaf_, leaf); }

  // Shares of leaves differ by one at most, the first are the larger: when there are fewer leaves than devices, the last
  // devices have none.
  LeafRange leaves_of(int device) const noexcept { return {.begin = first_of(device), .end = first_of(device + 1)}; }

 private:
  std::int64_t first_of(std::int64_t device) const noexcept {
    return device * (leaves_ / devices_) + std::min(device, leaves_ % devices_);
  }

  std::int64_t rows_;
  std::int64_t rows_per_leaf_;
  std::int64_t leaves_;
  std::int64_t devices_;
};

}  // namespace brigade::training
