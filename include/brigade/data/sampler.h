// Which rows of a dataset a step takes, and which of those a shard gets.
//
// One permutation of all rows per epoch, random::permutation(fold_in(key(seed), epoch)); step s takes its next
// `global_batch` rows, and shards are cut from them in order. Nothing depends on who carries the shards, nothing is
// dropped or repeated, and the last step of an epoch takes what is left. The position is two numbers, so a run resumes
// from them alone.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <span>

namespace brigade::data {

enum class Order {
  kShuffled,    // a permutation of its own for each epoch, for training
  kSequential,  // as stored, for evaluation
};

// Step `step` of epoch `epoch`, both counted from 0.
struct Position {
  std::int64_t epoch = 0;
  std::int64_t step = 0;

  friend bool operator==(const Position&, const Position&) = default;
};

// Rows [begin, end) of those of a step.
struct RowRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;

  std::int64_t size() const { return end - begin; }
  friend bool operator==(const RowRange&, const RowRange&) = default;
};

// [shard * rows_per_shard, (shard + 1) * rows_per_shard) of the `rows` that a step has; empty where they end before it.
RowRange shard_range(std::int64_t rows, std::int64_t rows_per_shard, std::int64_t shard);

struct SamplerOptions {
  std::int64_t rows = 0;          // of the dataset
  std::int64_t global_batch = 0;  // rows of one step
  std::int64_t seed = 0;
  Order order = Order::kShuffled;
};

class Sampler {
 public:
  // Throws InvalidArgument when rows or global_batch is below 1.
  explicit Sampler(SamplerOptions options);

  std::int64_t steps_per_epoch() const;

  // The step after `position`, in the next epoch if it was the last of its own.
  Position after(Position position) const;

  // Row numbers of one step, in order; valid until the next call. Throws InvalidArgument when there is no such step.
  std::span<const std::int64_t> rows_of(Position position);

 private:
  SamplerOptions options_;
  torch::Tensor order_;  // rows of cached_epoch_, or of every epoch when sequential
  std::int64_t cached_epoch_ = -1;
};

}  // namespace brigade::data
