#include "buckets.h"

#include <numeric>

namespace brigade::training {

Buckets::Buckets(const Layout& layout, BucketBytes limits, std::vector<std::size_t> order)
    : bucket_of_(layout.segments().size()) {
  if (order.empty()) {
    order.resize(bucket_of_.size());
    std::iota(order.rbegin(), order.rend(), std::size_t{0});
  }
  std::size_t bytes = limits.first;
  for (const std::size_t segment : order) {
    if (bytes >= (members_.size() <= 1 ? limits.first : limits.others)) {
      members_.emplace_back();
      bytes = 0;
    }
    members_.back().push_back(segment);
    bucket_of_[segment] = members_.size() - 1;
    bytes += layout.segments()[segment].bytes;
  }
}

}  // namespace brigade::training
