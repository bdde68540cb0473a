// The sum of one tensor over a device's leaves, as far as it is made of whole subtrees of T(0, L).
//
// A binary counter: two neighbours that are halves of one subtree become one as soon as both are there. So there are at most
// log2 of the leaves plus one partial sums while leaves come, and 2 * log2 at the end of any range of leaves.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <vector>

namespace brigade::training {

class LeafSums {
 public:
  // What `count` leaves from `begin` on add up to.
  struct Part {
    std::int64_t begin = 0;
    std::int32_t count = 1;
    at::Tensor sum = {};
  };

  // `value` is that of the leaf after the last one added, whichever is the first. All have one dtype and the same dense
  // strides; the sum may be kept in the memory of any of them.
  void add(std::int64_t leaf, at::Tensor value);

  // Makes one part of all, the last ones first: no longer a subtree, so nothing may be added after it.
  void fold();

  std::span<const Part> parts() const noexcept { return parts_; }
  void clear() noexcept { parts_.clear(); }

 private:
  void merge_last_two();

  std::vector<Part> parts_;
};

}  // namespace brigade::training
