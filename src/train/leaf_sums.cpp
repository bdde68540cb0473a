#include "leaf_sums.h"

#include <array>

#include "brigade/comm/reduce.h"
#include "memory.h"

namespace brigade::training {
namespace {

bool are_halves(const LeafSums::Part& left, const LeafSums::Part& right) {
  return left.count == right.count && left.begin % (2 * std::int64_t{left.count}) == 0;
}

}  // namespace

void LeafSums::add(std::int64_t leaf, at::Tensor value) {
  parts_.push_back({.begin = leaf, .sum = std::move(value)});
  while (parts_.size() >= 2 && are_halves(parts_.end()[-2], parts_.back())) {
    Part& left = parts_.end()[-2];
    const std::array<std::span<const std::byte>, 2> halves = {bytes_of(left.sum), bytes_of(parts_.back().sum)};
    comm::reduce({}, dtype_of(left.sum.scalar_type()), halves, bytes_of(left.sum));
    left.count *= 2;
    parts_.pop_back();
  }
}

}  // namespace brigade::training
