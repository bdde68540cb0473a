// What code inside a loss function may ask about the leaf that it runs in: the key of its random numbers, and its number.
//
// A leaf's random numbers come from the key of (seed, step, leaf) and the number of the draw, so they are the same on any
// device, and again when a checkpointed segment is computed a second time.
#pragma once

#include <cstdint>

#include "brigade/random/key.h"

namespace brigade::training {

// Makes the calling thread run leaf `index` of `step` while it lives. DataParallel does this around the loss function; a
// program of its own, such as the body of a pmap, may do it to use layers that draw.
class LeafScope {
 public:
  LeafScope(random::Key key, std::int64_t step, std::int64_t index) noexcept;
  ~LeafScope();
  LeafScope(const LeafScope&) = delete;
  LeafScope& operator=(const LeafScope&) = delete;

 private:
  friend random::Key next_leaf_key();
  friend class DrawScope;
  friend bool inside_leaf() noexcept;
  friend std::int64_t leaf_index();
  friend std::int64_t leaf_step();

  LeafScope* outer_;
  random::Key key_;
  std::int64_t step_;
  std::int64_t index_;
  std::int64_t draws_ = 0;
};

// Repeats draws: while it lives, draws are numbered from `first` on; then as before.
class DrawScope {
 public:
  explicit DrawScope(std::int64_t first);
  ~DrawScope();
  DrawScope(const DrawScope&) = delete;
  DrawScope& operator=(const DrawScope&) = delete;

  // The number of the next draw of this thread's leaf; 0 outside one.
  static std::int64_t next() noexcept;

 private:
  std::int64_t before_;
};

bool inside_leaf() noexcept;

// The key of the next draw. This and the others throw InvalidArgument outside a leaf.
random::Key next_leaf_key();
std::int64_t leaf_index();
std::int64_t leaf_step();

}  // namespace brigade::training
