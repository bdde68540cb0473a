#include "leaf_sums.h"

#include "memory.h"

namespace brigade::training {
namespace {

bool are_halves(const LeafSums::Part& left, const LeafSums::Part& right) {
  return left.count == right.count && left.begin % (2 * std::int64_t{left.count}) == 0;
}

}  // namespace

void LeafSums::add(std::int64_t leaf, at::Tensor value) {
  parts_.push_back({.begin = leaf, .sum = std::move(value)});
  while (parts_.size() >= 2 && are_halves(parts_.end()[-2], parts_.back())) merge_last_two();
}

void LeafSums::fold() {
  while (parts_.size() >= 2) merge_last_two();
}

void LeafSums::merge_last_two() {
  Part& left = parts_.end()[-2];
  add_in_place(left.sum, parts_.back().sum);
  left.count += parts_.back().count;
  parts_.pop_back();
}

}  // namespace brigade::training
