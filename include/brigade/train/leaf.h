// What code inside a loss function may ask about the leaf that it runs in: the key of its random numbers, and its number.
//
// A leaf's random numbers come from the key of (seed, step, leaf) and the number of the draw, so they are the same on any
// device, and again when a checkpointed segment is computed a second time.
#pragma once

#include <cstdint>
#include <optional>

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
  friend class LeafPoint;
  friend class RecomputeScope;
  friend bool inside_leaf() noexcept;
  friend std::int64_t leaf_index();
  friend std::int64_t leaf_step();

  LeafScope* outer_;
  random::Key key_;
  std::int64_t step_;
  std::int64_t index_;
  std::int64_t draws_ = 0;
};

// A place in a leaf: which one, and the number of its next draw.
class LeafPoint {
 public:
  // Of the calling thread; outside a leaf, too.
  static LeafPoint current() noexcept;

 private:
  friend class RecomputeScope;

  bool is_inside_ = false;
  random::Key key_ = {};
  std::int64_t step_ = 0;
  std::int64_t index_ = 0;
  std::int64_t draws_ = 0;
};

// While it lives, the calling thread computes again what it computed from `point` on: draws give the same numbers, and layers
// that keep statistics of batches do not count this one a second time.
class RecomputeScope {
 public:
  explicit RecomputeScope(const LeafPoint& point);
  ~RecomputeScope();
  RecomputeScope(const RecomputeScope&) = delete;
  RecomputeScope& operator=(const RecomputeScope&) = delete;

 private:
  std::optional<LeafScope> leaf_;
  bool before_;
};

// Whether a RecomputeScope lives in the calling thread.
bool recomputes() noexcept;

bool inside_leaf() noexcept;

// The key of the next draw. This and the others throw InvalidArgument outside a leaf.
random::Key next_leaf_key();
std::int64_t leaf_index();
std::int64_t leaf_step();

}  // namespace brigade::training
