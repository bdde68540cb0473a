#include "brigade/train/leaf.h"

#include "brigade/base/error.h"

namespace brigade::training {
namespace {

thread_local LeafScope* current = nullptr;

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

DrawScope::DrawScope(std::int64_t first) : before_(scope().draws_) { current->draws_ = first; }

DrawScope::~DrawScope() { current->draws_ = before_; }

std::int64_t DrawScope::next() noexcept { return current != nullptr ? current->draws_ : 0; }

bool inside_leaf() noexcept { return current != nullptr; }

random::Key next_leaf_key() {
  LeafScope& leaf = scope();
  return random::fold_in(leaf.key_, leaf.draws_++);
}

std::int64_t leaf_index() { return scope().index_; }

std::int64_t leaf_step() { return scope().step_; }

}  // namespace brigade::training
