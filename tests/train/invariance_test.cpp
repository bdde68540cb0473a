// The same bits on any number of devices, with parameters shared or not, whatever the buckets are.
#include <gmock/gmock.h>

#include "brigade/optim/adam.h"
#include "brigade/optim/lamb.h"
#include "train/support.h"

namespace brigade::training {
namespace invariance_test {

using namespace testing;

struct Outcome {
  std::vector<at::Tensor> parameters;
  std::vector<double> numbers;         // losses, norms, factors
  std::vector<std::uint64_t> digests;  // of parameters and optimizer state after each step
};

constexpr int kSteps = 6;

Outcome run(DataParallelOptions options, int count, std::int64_t global_batch) {
  options.devices = first_devices(count);
  options.global_batch = global_batch;
  DataParallel trainer(make_mlp(), options);
  Outcome result;
  for (int step = 0; step < kSteps; ++step) {
    // Every third step is a short one, as at the end of an epoch.
    const std::int64_t rows = step % 3 == 2 ? global_batch / 2 + 1 : global_batch;
    const StepReport report = trainer.step(make_rows(rows, step), mean_loss);
    for (const double number : {report.loss, report.weight, report.gradient_norm, report.clip_factor})
      result.numbers.push_back(number);
    result.digests.push_back(report.digest.value());
  }
  result.parameters = values_of(trainer.model());
  return result;
}

void expect_same(const Outcome& one, const Outcome& other, const std::string& what) {
  EXPECT_EQ(one.numbers, other.numbers) << what;
  EXPECT_EQ(one.digests, other.digests) << what;
  for (std::size_t i = 0; i < one.parameters.size(); ++i)
    EXPECT_TRUE(same_bits(one.parameters[i], other.parameters[i])) << what << ", parameter " << i;
}

struct Work {
  std::string name;
  DataParallelOptions options;
};

class TheSameBits : public ::testing::TestWithParam<Work> {};
INSTANTIATE_TEST_SUITE_P(
    Rules, TheSameBits,
    ::testing::Values(Work{"sgd", {.optimizer = optim::sgd({.momentum = 0.9, .weight_decay = 1e-3})}},
                      Work{"adamw_clipped", {.optimizer = optim::adamw({}), .clip = optim::clip_norm(0.5)}},
                      Work{"lamb", {.optimizer = optim::lamb({}), .groups = {optim::exempt_biases_and_norms()}}},
                      Work{"bfloat16", {.optimizer = optim::adam({}), .precision = Precision::kBFloat16}}),
    [](const auto& test) { return test.param.name; });

TEST_P(TheSameBits, OnOneToEightDevices) {
  DataParallelOptions options = GetParam().options;
  options.logical_shards = 8;
  const Outcome one = run(options, 1, 24);
  for (const int count : {2, 3, 4, 5, 8}) expect_same(run(options, count, 24), one, std::to_string(count) + " devices");
}

TEST_P(TheSameBits, OfSixShards) {
  DataParallelOptions options = GetParam().options;
  options.logical_shards = 6;
  const Outcome one = run(options, 1, 18);
  for (const int count : {2, 3}) expect_same(run(options, count, 18), one, std::to_string(count) + " devices");
}

TEST_P(TheSameBits, WithParametersOfTheirOwnAndOtherBuckets) {
  DataParallelOptions options = GetParam().options;
  options.logical_shards = 8;
  const Outcome one = run(options, 3, 24);
  options.share_parameters = false;
  expect_same(run(options, 3, 24), one, "own copies");
  for (const std::size_t bytes : {std::size_t{1}, std::size_t{1} << 10, std::size_t{1} << 14}) {
    options.first_bucket_bytes = options.bucket_bytes = bytes;
    options.share_parameters = !options.share_parameters;
    expect_same(run(options, 3, 24), one, std::to_string(bytes) + " bytes a bucket");
  }
  options.overlap = Overlap::kOff;
  expect_same(run(options, 3, 24), one, "no overlap");
}

TEST_P(TheSameBits, AsAccumulation) {
  DataParallelOptions options = GetParam().options;
  options.accumulate = 3;
  const Outcome accumulated = run(options, 2, 24);
  options.accumulate = 1;
  options.logical_shards = 6;
  expect_same(run(options, 5, 24), accumulated, "6 shards on 5 devices");
}

// What the tree is for: without it the bits would differ between these.
TEST(TheTree, MattersForThisData) {
  const auto sums = plain_sums(make_mlp(), make_rows(24), 3);
  const auto others = plain_sums(make_mlp(), make_rows(24), 24);
  EXPECT_FALSE(same_bits(sums[0], others[0]));
}

}  // namespace invariance_test
}  // namespace brigade::training
