#include "brigade/data/loader.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <ranges>
#include <stdexcept>
#include <utility>
#include <vector>

#include "brigade/base/error.h"
#include "support/errors.h"

namespace brigade::data {
namespace loader_test {

static_assert(std::ranges::input_range<Loader>);

// Row i holds the two pixels (i % 251, i / 251) and the label i, so a row tells which one it is.
Dataset numbered(std::int64_t rows) {
  const torch::Tensor number = at::arange(rows, at::kLong);
  const torch::Tensor pixels = at::stack({number.remainder(251), number.div(251, "floor")}, 1).to(at::kByte);
  return {.x = pixels.reshape({rows, 1, 2}), .y = number, .classes = rows};
}

void append_rows(std::vector<std::int64_t>& rows, const Batch& batch) {
  std::int64_t count = 0;
  for (const Shard& shard : batch.shards) {
    count += shard.rows();
    const torch::Tensor pixels = shard.x.reshape({-1, 2}).to(at::kLong);
    EXPECT_TRUE((pixels.select(1, 0) + 251 * pixels.select(1, 1)).equal(shard.y)) << "x and y came apart";
    rows.insert(rows.end(), shard.y.data_ptr<std::int64_t>(), shard.y.data_ptr<std::int64_t>() + shard.rows());
  }
  EXPECT_EQ(count, batch.rows);
}

std::vector<std::int64_t> rest_of(Loader& loader) {
  std::vector<std::int64_t> rows;
  for (const Batch& batch : loader) append_rows(rows, batch);
  return rows;
}

TEST(Loader, HandsOutEveryRowOncePerEpoch) {
  for (const int prefetch : {0, 1, 2, 5}) {
    Loader loader(numbered(1003), {.global_batch = 48, .shards = 3, .epochs = 2, .prefetch = prefetch});
    std::vector<std::int64_t> rows = rest_of(loader);
    ASSERT_EQ(rows.size(), 2006u);
    for (const auto first : {rows.begin(), rows.begin() + 1003}) {
      std::sort(first, first + 1003);
      for (std::int64_t i = 0; i < 1003; ++i) ASSERT_EQ(first[i], i);
    }
  }
}

TEST(Loader, OrderDoesNotDependOnTheNumberOfShards) {
  Loader alone(numbered(100), {.global_batch = 24, .shards = 1, .epochs = 2, .seed = 5});
  const auto expected = rest_of(alone);
  for (const std::int64_t shards : {2, 3, 8, 24}) {
    Loader loader(numbered(100), {.global_batch = 24, .shards = shards, .epochs = 2, .seed = 5});
    EXPECT_EQ(rest_of(loader), expected) << shards;
  }
}

TEST(Loader, CutsTheLastPartialStepInOrderAndLeavesTheRestEmpty) {
  Loader loader(numbered(26), {.global_batch = 16, .shards = 4, .order = Order::kSequential});
  loader.next();
  const auto batch = loader.next();
  ASSERT_TRUE(batch);
  EXPECT_EQ(batch->step, 1);
  EXPECT_EQ(batch->rows, 10);
  std::vector<std::int64_t> counts;
  for (const Shard& shard : batch->shards) counts.push_back(shard.rows());
  EXPECT_EQ(counts, (std::vector<std::int64_t>{4, 4, 2, 0}));
  EXPECT_TRUE(batch->shards[2].y.equal(at::tensor({24, 25}, at::kLong)));
  EXPECT_EQ(batch->shards[3].x.sizes(), at::IntArrayRef({0, 1, 2}));
  EXPECT_EQ(batch->shards[3].y.scalar_type(), at::kLong);
  EXPECT_EQ(loader.next(), std::nullopt);
  EXPECT_EQ(loader.next(), std::nullopt);
}

TEST(Loader, EvaluationIsInOrder) {
  Loader loader(numbered(26), {.global_batch = 10, .shards = 2, .order = Order::kSequential});
  const auto rows = rest_of(loader);
  ASSERT_EQ(rows.size(), 26u);
  for (std::int64_t i = 0; i < 26; ++i) EXPECT_EQ(rows[static_cast<std::size_t>(i)], i);
}

TEST(Loader, ShardsOwnAlignedContiguousTensors) {
  Loader loader(numbered(30), {.global_batch = 30, .shards = 5});
  const auto batch = loader.next();
  for (const Shard& shard : batch->shards) {
    EXPECT_TRUE(shard.x.is_contiguous());
    EXPECT_EQ(shard.x.scalar_type(), at::kByte);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(shard.x.data_ptr()) % 64, 0u);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(shard.y.data_ptr()) % 64, 0u);
  }
}

TEST(Loader, ReadsViewsByTheirValues) {
  Dataset dataset = numbered(40);
  dataset.x = dataset.x.slice(0, 0, 40, 2).transpose(1, 2);
  dataset.y = dataset.y.slice(0, 0, 40, 2).to(at::kByte);
  Loader loader(dataset, {.global_batch = 20, .order = Order::kSequential});
  const Shard shard = loader.next()->shards[0];
  EXPECT_TRUE(shard.x.equal(dataset.x));
  EXPECT_TRUE(shard.y.equal(at::arange(0, 40, 2, at::kLong)));
  // One row of a view keeps the strides of all of them.
  Loader one({.x = dataset.x.narrow(0, 3, 1), .y = dataset.y.narrow(0, 3, 1)}, {.global_batch = 1});
  EXPECT_TRUE(one.next()->shards[0].x.equal(dataset.x.narrow(0, 3, 1)));
}

// A language model answers with one byte after each byte.
TEST(Loader, GivesEachRowAllOfItsLabels) {
  const torch::Tensor bytes = at::arange(41, at::kByte);
  const Dataset dataset{.x = bytes.narrow(0, 0, 40).reshape({10, 4}), .y = bytes.narrow(0, 1, 40).reshape({10, 4})};
  Loader loader(dataset, {.global_batch = 10, .shards = 2, .seed = 3});
  const auto batch = loader.next();
  for (const Shard& shard : batch->shards) {
    EXPECT_EQ(shard.x.scalar_type(), at::kByte);
    EXPECT_EQ(shard.y.scalar_type(), at::kLong);
    EXPECT_EQ(shard.y.sizes(), at::IntArrayRef({5, 4}));
    EXPECT_TRUE(shard.y.equal(shard.x.to(at::kLong) + 1));
  }
}

TEST(Loader, ResumesFromItsPosition) {
  const LoaderOptions options{.global_batch = 16, .shards = 2, .epochs = 3, .seed = 9};
  Loader whole(numbered(100), options);
  const auto expected = rest_of(whole);
  EXPECT_EQ(whole.position(), (Position{.epoch = 3, .step = 0}));

  Loader stopped(numbered(100), options);
  std::vector<std::int64_t> rows;
  for (int step = 0; step < 9; ++step) append_rows(rows, *stopped.next());
  // Batches that lie ready do not count: seven steps an epoch, so the tenth is the third of epoch 1.
  EXPECT_EQ(stopped.position(), (Position{.epoch = 1, .step = 2}));
  LoaderOptions resumed_options = options;
  resumed_options.start = stopped.position();
  Loader resumed(numbered(100), resumed_options);
  const auto rest = rest_of(resumed);
  rows.insert(rows.end(), rest.begin(), rest.end());
  EXPECT_EQ(rows, expected);

  stopped.seek({.epoch = 0, .step = 0});
  EXPECT_EQ(rest_of(stopped), expected);
  stopped.seek({.epoch = 3, .step = 0});
  EXPECT_EQ(stopped.next(), std::nullopt);
}

TEST(Loader, TransformsBatchesBeforeTheyAreHandedOut) {
  LoaderOptions options{.global_batch = 4, .order = Order::kSequential};
  options.transform = [](Batch& batch) { batch.shards[0].y += 100 * (batch.step + 1); };
  Loader loader(numbered(8), options);
  EXPECT_TRUE(loader.next()->shards[0].y.equal(at::tensor({100, 101, 102, 103}, at::kLong)));
  EXPECT_TRUE(loader.next()->shards[0].y.equal(at::tensor({204, 205, 206, 207}, at::kLong)));
}

TEST(Loader, AnErrorWhilePreparingReachesTheOneWhoAsks) {
  for (const int prefetch : {0, 2}) {
    LoaderOptions options{.global_batch = 4, .prefetch = prefetch};
    options.transform = [](Batch& batch) {
      if (batch.step == 1) throw std::out_of_range("step 1 went wrong");
    };
    Loader loader(numbered(40), options);
    EXPECT_TRUE(loader.next());
    for (int again = 0; again < 2; ++again) {
      expect_error<std::out_of_range>([&] { loader.next(); }, {"step 1 went wrong"});
    }
    EXPECT_EQ(loader.position(), (Position{.epoch = 0, .step = 1}));
    // Going back is a way out.
    loader.seek({.epoch = 0, .step = 2});
    EXPECT_EQ(loader.next()->step, 2);
  }
}

TEST(Loader, MovesAndIsDestroyedWithBatchesLeft) {
  for (int taken = 0; taken < 20; ++taken) {
    Loader loader(numbered(1000), {.global_batch = 4, .epochs = 1000});
    for (int i = 0; i < taken % 4; ++i) loader.next();
    Loader moved = std::move(loader);
    EXPECT_EQ(moved.next()->step, taken % 4);
  }
}

TEST(Loader, RefusesOptionsThatDoNotFit) {
  const auto with = [](LoaderOptions options) { return [options] { Loader loader(numbered(10), options); }; };
  expect_error<InvalidArgument>(with({.global_batch = 10, .shards = 3}), {"10", "3 equal shards", "multiple"});
  expect_error<InvalidArgument>(with({.global_batch = 10, .shards = 0}), {"0 equal shards"});
  expect_error<InvalidArgument>(with({}), {"global_batch is 0"});
  expect_error<InvalidArgument>(with({.global_batch = 2, .epochs = -1}), {"epochs is -1"});
  expect_error<InvalidArgument>(with({.global_batch = 2, .prefetch = -1}), {"prefetch is -1"});
  expect_error<InvalidArgument>(with({.global_batch = 2, .start = {.epoch = 0, .step = 5}}),
                                {"step 5", "1 epochs of 5"});
  expect_error<InvalidArgument>(with({.global_batch = 2, .start = {.epoch = 2, .step = 0}}), {"epoch 2"});
  expect_error<InvalidArgument>(with({.global_batch = 2, .start = {.epoch = 0, .step = -1}}), {"step -1"});
}

TEST(Loader, RefusesADatasetThatDoesNotFit) {
  const auto with = [](Dataset dataset) { return [dataset] { Loader loader(dataset, {.global_batch = 2}); }; };
  const Dataset good = numbered(10);
  expect_error<ShapeError>(with({}), {"dense tensors on the CPU"});
  expect_error<ShapeError>(with({.x = good.x, .y = good.y.narrow(0, 0, 9)}), {"10 rows of x and 9 of y"});
  expect_error<ShapeError>(with({.x = good.x, .y = good.y.to(at::kFloat)}), {"int64 or uint8", "Float"});
  expect_error<ShapeError>(with({.x = good.x, .y = good.y.reshape({5, 2})}), {"10 rows of x and 5 of y"});
  expect_error<InvalidArgument>(with(numbered(0)), {"no rows"});
}

}  // namespace loader_test
}  // namespace brigade::data
