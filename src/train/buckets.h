// Which gradients travel together, and in which order.
#pragma once

#include <cstddef>
#include <vector>

#include "layout.h"

namespace brigade::training {

struct BucketBytes {
  std::size_t first = 0;  // small, so that the reduction begins early
  std::size_t others = 0;
};

class Buckets {
 public:
  // Segments in `order`, each bucket closed once it holds as many bytes as it may. Without an order: from the last to the
  // first, as backward mostly produces those first.
  Buckets(const Layout& layout, BucketBytes limits, std::vector<std::size_t> order = {});

  std::size_t size() const noexcept { return members_.size(); }
  const std::vector<std::size_t>& operator[](std::size_t bucket) const noexcept { return members_[bucket]; }
  std::size_t of(std::size_t segment) const noexcept { return bucket_of_[segment]; }

 private:
  std::vector<std::vector<std::size_t>> members_;
  std::vector<std::size_t> bucket_of_;
};

}  // namespace brigade::training
