#include "brigade/data/sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "brigade/base/error.h"
#include "support/errors.h"

namespace brigade::data {
namespace sampler_test {

using Rows = std::vector<std::int64_t>;

Rows rows_of(Sampler& sampler, Position position) {
  const auto rows = sampler.rows_of(position);
  return Rows(rows.begin(), rows.end());
}

Rows epoch_of(Sampler& sampler, std::int64_t epoch) {
  Rows all;
  for (std::int64_t step = 0; step < sampler.steps_per_epoch(); ++step) {
    const auto rows = sampler.rows_of({.epoch = epoch, .step = step});
    all.insert(all.end(), rows.begin(), rows.end());
  }
  return all;
}

Rows sequence(std::int64_t count) {
  Rows rows;
  for (std::int64_t i = 0; i < count; ++i) rows.push_back(i);
  return rows;
}

TEST(Sampler, TakesEveryRowOncePerEpochAndKeepsTheLastPartialStep) {
  for (const std::int64_t rows : {1, 7, 8, 9, 1000}) {
    Sampler sampler({.rows = rows, .global_batch = 8, .seed = 3});
    EXPECT_EQ(sampler.steps_per_epoch(), (rows + 7) / 8);
    for (std::int64_t epoch = 0; epoch < 3; ++epoch) {
      Rows all = epoch_of(sampler, epoch);
      std::sort(all.begin(), all.end());
      EXPECT_EQ(all, sequence(rows));
    }
  }
}

TEST(Sampler, OrderDependsOnSeedAndEpochOnly) {
  Sampler sampler({.rows = 100, .global_batch = 8, .seed = 3});
  const Rows first = epoch_of(sampler, 0);
  EXPECT_NE(first, epoch_of(sampler, 1));
  EXPECT_EQ(first, epoch_of(sampler, 0));
  Sampler other_batch({.rows = 100, .global_batch = 30, .seed = 3});
  EXPECT_EQ(first, epoch_of(other_batch, 0));
  Sampler other_seed({.rows = 100, .global_batch = 8, .seed = 4});
  EXPECT_NE(first, epoch_of(other_seed, 0));
}

// jax.random.permutation(jax.random.fold_in(jax.random.key(7), 2), 10), from JAX 0.7.2.
TEST(Sampler, HasTheOrderThatJaxDraws) {
  Sampler sampler({.rows = 10, .global_batch = 10, .seed = 7});
  EXPECT_EQ(rows_of(sampler, {.epoch = 2, .step = 0}), (Rows{8, 4, 3, 2, 1, 5, 7, 6, 9, 0}));
}

TEST(Sampler, SequentialOrderIsAsStored) {
  Sampler sampler({.rows = 11, .global_batch = 4, .order = Order::kSequential});
  EXPECT_EQ(epoch_of(sampler, 0), sequence(11));
  EXPECT_EQ(epoch_of(sampler, 5), sequence(11));
}

TEST(Sampler, PositionGoesOnIntoTheNextEpoch) {
  const Sampler sampler({.rows = 11, .global_batch = 4});
  EXPECT_EQ(sampler.after({.epoch = 2, .step = 1}), (Position{.epoch = 2, .step = 2}));
  EXPECT_EQ(sampler.after({.epoch = 2, .step = 2}), (Position{.epoch = 3, .step = 0}));
}

TEST(Sampler, RefusesWhatCannotBe) {
  expect_error<InvalidArgument>([] { Sampler({.rows = 0, .global_batch = 4}); }, {"no rows"});
  expect_error<InvalidArgument>([] { Sampler({.rows = 4, .global_batch = 0}); }, {"global_batch is 0"});
  Sampler sampler({.rows = 11, .global_batch = 4});
  expect_error<InvalidArgument>([&] { sampler.rows_of({.epoch = 0, .step = 3}); }, {"no step 3", "3 steps of 4 rows"});
  expect_error<InvalidArgument>([&] { sampler.rows_of({.epoch = 0, .step = -1}); }, {"no step -1"});
  expect_error<InvalidArgument>([&] { sampler.rows_of({.epoch = -1, .step = 0}); }, {"epoch -1"});
}

TEST(ShardRange, CutsWhatIsThereInOrder) {
  EXPECT_EQ(shard_range(12, 4, 1), (RowRange{.begin = 4, .end = 8}));
  EXPECT_EQ(shard_range(6, 4, 1), (RowRange{.begin = 4, .end = 6}));
  EXPECT_EQ(shard_range(6, 4, 2).size(), 0);
}

}  // namespace sampler_test
}  // namespace brigade::data
