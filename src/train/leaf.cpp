#include "brigade/train/leaf.h"

#include <utility>

#include "brigade/base/error.h"

namespace brigade::training {
namespace {

thread_local LeafScope* current = nullptr;
thread_local bool computing_again = false;

LeafScope& scope() {
  if (current != nullptr) return *current;
  throw InvalidArgument(
      "no leaf runs on this thread: random numbers of a leaf, its index and its step are there inside the loss "
      "function of a "
      "DataParallel, or where a LeafScope lives");
}

}  // namespace

LeafScope::LeafScope(random::Key key, std::int64_t step, std::int64_t index) noexcept
    : outer_(current), key_(key), step_(step), index_(index) {
  current = this;
}

LeafScope::~LeafScope() { current = outer_; }

LeafPoint LeafPoint::current() noexcept {
  LeafPoint point;
  if (const LeafScope* leaf = training::current) {
    point.is_inside_ = true;
    point.key_ = leaf->key_;
    point.step_ = leaf->step_;
    point.index_ = leaf->index_;
    point.draws_ = leaf->draws_;
  }
  return point;
}

RecomputeScope::RecomputeScope(const LeafPoint& point) : before_(std::exchange(computing_again, true)) {
  if (!point.is_inside_) return;
  leaf_.emplace(point.key_, point.step_, point.index_);
  leaf_->draws_ = point.draws_;
}

RecomputeScope::~RecomputeScope() { computing_again = before_; }

bool recomputes() noexcept { return computing_again; }

bool inside_leaf() noexcept { return current != nullptr; }

random::Key next_leaf_key() {
  LeafScope& leaf = scope();
  return random::fold_in(leaf.key_, leaf.draws_++);
}

std::int64_t leaf_index() { return scope().index_; }

std::int64_t leaf_step() { return scope().step_; }

}  // namespace brigade::training
