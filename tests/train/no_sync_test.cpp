// A step that is given in parts: no reduction and no update before the last, then one of all rows.
#include <gmock/gmock.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <mutex>
#include <stdexcept>

#include "brigade/base/error.h"
#include "brigade/optim/adam.h"
#include "brigade/train/batch_norm.h"
#include "brigade/train/leaf.h"
#include "support/errors.h"
#include "train/support.h"

namespace brigade::training {
namespace no_sync_test {

using namespace testing;

Rows slice(const Rows& rows, std::int64_t begin, std::int64_t end) {
  return {rows.x.slice(0, begin, end), rows.y.slice(0, begin, end)};
}

DataParallelOptions options_of(int devices, std::int64_t per_device_batch) {
  return {.optimizer = optim::adam({}),
          .learning_rate = schedule::constant(0.01),
          .per_device_batch = per_device_batch,
          .devices = first_devices(devices)};
}

// Those of the mean over all rows, by one device at once.
void expect_gradients(const DataParallel<Mlp>& trainer, const Mlp& model, const Rows& rows) {
  const std::vector<at::Tensor> sums = plain_sums(model, rows, rows.x.size(0));
  const auto gradients = trainer.gradients();
  ASSERT_EQ(gradients.size(), sums.size());
  for (std::size_t i = 0; i < sums.size(); ++i) {
    const at::Tensor mean = sums[i] / static_cast<double>(rows.x.size(0));
    EXPECT_TRUE(at::allclose(gradients[i].tensor, mean, 1e-5, 1e-7))
        << gradients[i].name << ", " << trainer.shape().devices << " devices";
  }
}

TEST(NoSync, MakesOneStepOfAllRowsWhateverTheirNumberInEachPart) {
  const Mlp model = make_mlp();
  for (const int devices : {1, 2, 3, 5}) {
    const std::int64_t whole = 2 * devices;  // rows of a full part
    // The first, middle and last part leave devices without rows by turns.
    for (const auto& parts : std::vector<std::vector<std::int64_t>>{
             {whole, whole}, {whole, 1, whole}, {1, whole}, {1, 1}, {whole, 1}, {whole - 1, 1, 1, whole}}) {
      DataParallel trainer(model, options_of(devices, 2));
      std::int64_t total = 0;
      for (const std::int64_t rows : parts) total += rows;
      const Rows data = make_rows(total);
      StepReport report;
      std::int64_t done = 0;
      for (std::size_t part = 0; part < parts.size(); ++part) {
        const Rows rows = slice(data, done, done + parts[part]);
        done += parts[part];
        const bool last = part + 1 == parts.size();
        report = last ? trainer.step(rows, mean_loss) : trainer.no_sync(rows, mean_loss);
        EXPECT_EQ(report.rows, done);
        EXPECT_EQ(report.step, 0);
        EXPECT_NEAR(report.loss, mean_loss(model, slice(data, 0, done)).item<double>(), 1e-6);
        EXPECT_EQ(trainer.steps(), last ? 1 : 0);
        if (!last) {
          EXPECT_TRUE(same_bits(trainer.model().w1, model.w1));
        }
      }
      expect_gradients(trainer, model, data);
    }
  }
}

// Device d carries the same leaves in the same order, two each, which are halves of one subtree.
TEST(NoSync, HasTheBitsOfAccumulateOnTheSameLeaves) {
  for (const int devices : {1, 2, 4}) {
    for (const bool share : {true, false}) {
      DataParallelOptions accumulates = options_of(devices, 3);
      accumulates.share_parameters = share;
      DataParallelOptions parts = accumulates;
      accumulates.accumulate = 2;
      DataParallel one(make_mlp(), accumulates);
      DataParallel other(make_mlp(), parts);
      for (int step = 0; step < 3; ++step) {
        const Rows data = make_rows(6 * devices, step);
        const auto of_part = [&](std::int64_t part) {
          std::vector<at::Tensor> x, y;
          for (int d = 0; d < devices; ++d) {
            x.push_back(data.x.narrow(0, (2 * d + part) * 3, 3));
            y.push_back(data.y.narrow(0, (2 * d + part) * 3, 3));
          }
          return Rows{at::cat(x), at::cat(y)};
        };
        one.step(data, mean_loss);
        other.no_sync(of_part(0), mean_loss);
        other.step(of_part(1), mean_loss);
        expect_same_bits(values_of(one.model()), values_of(other.model()),
                         std::to_string(devices) + " devices, step " + std::to_string(step));
      }
    }
  }
}

// Three leaves a device and call, so that partial sums of a call are folded, and buckets of one parameter each, which start in
// backward.
TEST(NoSync, SumsSeveralLeavesOfADeviceInEveryPart) {
  for (const int devices : {1, 2, 3}) {
    DataParallelOptions options = options_of(devices, 2);
    options.accumulate = 3;
    options.first_bucket_bytes = options.bucket_bytes = 1;
    DataParallel trainer(make_mlp(), options);
    for (int step = 0; step < 3; ++step) {
      const Mlp before = tree::map([](const at::Tensor& t) { return t.detach().clone(); }, trainer.model());
      const std::int64_t rows = 6 * devices;
      const Rows data = make_rows(rows + 5 + rows - 1, step);
      trainer.no_sync(slice(data, 0, rows), mean_loss);
      trainer.no_sync(slice(data, rows, rows + 5), mean_loss);
      trainer.step(slice(data, rows + 5, 2 * rows + 4), mean_loss);
      expect_gradients(trainer, before, data);
    }
  }
}

// The two losses hand in gradients of w1 a different number of times.
TEST(NoSync, PartsMayHaveAnotherLossThanTheStep) {
  DataParallel trainer(make_mlp(), options_of(2, 2));
  const Rows data = make_rows(4);
  const auto both = [](const Mlp& model, const Rows& rows) {
    return mean_loss(model, rows) + 1e-3 * model.w2.square().sum() + 1e-3 * model.w1.view({-1}).square().sum();
  };
  for (int step = 0; step < 3; ++step) {
    trainer.no_sync(data, both);
    trainer.step(data, mean_loss);
    trainer.no_sync(data, mean_loss);
    trainer.step(data, both);
  }
  EXPECT_EQ(trainer.steps(), 6);
}

torch::nn::Sequential make_normalized() {
  torch::nn::Sequential net;
  net->push_back(torch::nn::Linear(70, 8));
  net->push_back(nn::SyncBatchNorm(8));
  net->push_back(torch::nn::Linear(8, 5));
  return net;
}

// Statistics of parts enter with the step's, and not with a step that is skipped.
TEST(NoSync, RunningStatisticsAreThoseOfStepsThatSucceed) {
  const auto loss = [](torch::nn::Sequential& net, const Rows& rows) {
    return at::cross_entropy_loss(net->forward(rows.x), rows.y);
  };
  DataParallelOptions options = options_of(2, 4);
  options.non_finite = NonFinite::kSkip;
  DataParallel trainer(make_normalized, options);
  const auto buffer = [&](const char* name) {
    return trainer.model()->named_buffers()["1." + std::string(name)].clone();
  };
  Rows bad = make_rows(8);
  bad.x.fill_(std::numeric_limits<float>::quiet_NaN());
  trainer.no_sync(bad, loss);
  EXPECT_TRUE(trainer.step(make_rows(8), loss).skipped);
  EXPECT_EQ(buffer("num_batches_tracked").item<std::int64_t>(), 0);
  EXPECT_TRUE(at::equal(buffer("running_mean"), at::zeros(8)));
  trainer.no_sync(make_rows(8), loss);
  EXPECT_EQ(buffer("num_batches_tracked").item<std::int64_t>(), 0);
  EXPECT_FALSE(trainer.step(make_rows(8), loss).skipped);
  EXPECT_EQ(buffer("num_batches_tracked").item<std::int64_t>(), 2);
  EXPECT_TRUE(at::isfinite(buffer("running_mean")).all().item<bool>());
}

TEST(NoSync, ALossScaleThatIsTooLargeDropsThePartsAndShrinks) {
  DataParallelOptions options = options_of(2, 2);
  options.loss_scale = {.initial = 65536, .interval = 100};
  DataParallel trainer(make_mlp(), options);
  const Rows data = make_rows(4);
  const auto overflows = [](const Mlp& model, const Rows& rows) { return mean_loss(model, rows) * 1e37; };
  trainer.no_sync(data, overflows);
  EXPECT_TRUE(trainer.step(data, mean_loss).skipped);
  const StepReport report = trainer.step(data, mean_loss);
  EXPECT_FALSE(report.skipped);
  EXPECT_EQ(report.loss_scale, 32768);
  EXPECT_EQ(report.rows, 4);
  EXPECT_NEAR(report.loss, mean_loss(make_mlp(), data).item<double>(), 1e-6);
}

TEST(NoSync, GradientsAreThoseOfTheLastStepBetweenPartsToo) {
  DataParallel trainer(make_mlp(), options_of(2, 2));
  const Rows data = make_rows(4);
  trainer.step(data, mean_loss);
  const at::Tensor before = trainer.gradients()[0].tensor;
  const auto heavy = [](const Mlp& model, const Rows& rows) { return mean_over(mean_loss(model, rows), 1000); };
  const StepReport part = trainer.no_sync(data, heavy);
  EXPECT_TRUE(same_bits(trainer.gradients()[0].tensor, before));
  const StepReport report = trainer.step(data, heavy);
  EXPECT_EQ(report.weight, 4000);
  // Times are of the whole step, as its rows are.
  EXPECT_GT(report.times.all, part.times.all);
  EXPECT_GT(report.times.forward, part.times.forward);
}

TEST(NoSync, CountsWeighPartsAndMetricsAreOfAllOfThem) {
  DataParallel trainer(make_mlp(), options_of(2, 4));
  const Rows data = make_rows(16);
  const auto loss = [](const Mlp& model, const Rows& rows) {
    const at::Tensor each = at::cross_entropy_loss(model(rows.x), rows.y, {}, at::Reduction::Sum);
    return sum_over(each, 2.0 * static_cast<double>(rows.x.size(0)))
        .with("rows", static_cast<double>(rows.x.size(0)), 1);
  };
  trainer.no_sync(slice(data, 0, 8), loss);
  const StepReport report = trainer.step(slice(data, 8, 16), loss);
  EXPECT_EQ(report.weight, 32);
  EXPECT_NEAR(report.loss, mean_loss(make_mlp(), data).item<double>() / 2, 1e-6);
  EXPECT_EQ(report.metrics.at("rows"), 4);  // 4 leaves of 4 rows
  EXPECT_EQ(report.leaves, 4);
  // The next step is one of its own again.
  const StepReport next = trainer.step(slice(data, 0, 8), loss);
  EXPECT_EQ(next.weight, 16);
  EXPECT_EQ(next.leaves, 2);
  EXPECT_EQ(next.step, 1);
}

// A parameter whose only gradient came in an earlier part is trained, and one without any is not.
TEST(NoSync, AParameterIsUsedWhenAnyPartUsesIt) {
  DataParallel trainer(make_mlp(), options_of(2, 2));
  const Mlp before = make_mlp();
  const Rows data = make_rows(4);
  const auto without_bias = [](const Mlp& model, const Rows& rows) {
    return at::cross_entropy_loss(at::matmul(at::relu(at::matmul(rows.x, model.w1)), model.w2), rows.y);
  };
  trainer.no_sync(data, mean_loss);
  StepReport report = trainer.step(data, without_bias);
  EXPECT_TRUE(report.unused_parameters.empty());
  EXPECT_FALSE(same_bits(trainer.model().b1, before.b1));
  trainer.no_sync(data, without_bias);
  report = trainer.step(data, without_bias);
  EXPECT_THAT(report.unused_parameters, ::testing::ElementsAre("b1", "b2"));
}

TEST(NoSync, KeysGoOnFromPartToPart) {
  DataParallel trainer(make_mlp(), options_of(2, 2));
  const Rows data = make_rows(4);
  std::mutex mutex;
  std::vector<std::uint64_t> drawn;
  const auto draws = [&](const Mlp& model, const Rows& rows) {
    const at::Tensor bits = random::bits(next_leaf_key(), {1});
    const std::lock_guard lock(mutex);
    drawn.push_back(static_cast<std::uint64_t>(bits.item<std::int64_t>()));
    return mean_loss(model, rows);
  };
  trainer.no_sync(data, draws);
  trainer.no_sync(data, draws);
  trainer.step(data, draws);
  std::sort(drawn.begin(), drawn.end());
  ASSERT_EQ(drawn.size(), 6U);
  EXPECT_EQ(std::unique(drawn.begin(), drawn.end()), drawn.end());
}

TEST(NoSync, APartThatThrowsLeavesTheOnesBefore) {
  const Rows data = make_rows(18);
  DataParallel calm(make_mlp(), options_of(3, 2));
  calm.no_sync(slice(data, 0, 6), mean_loss);
  calm.no_sync(slice(data, 6, 12), mean_loss);
  calm.step(slice(data, 12, 18), mean_loss);

  DataParallel trainer(make_mlp(), options_of(3, 2));
  const auto fails = [](const Mlp& model, const Rows& rows) {
    if (leaf_index() == 1) throw std::runtime_error("a bad row");
    return mean_loss(model, rows);
  };
  EXPECT_ERROR(trainer.no_sync(slice(data, 0, 6), fails), std::runtime_error, "a bad row");
  trainer.no_sync(slice(data, 0, 6), mean_loss);
  EXPECT_ERROR(trainer.no_sync(slice(data, 6, 12), fails), std::runtime_error, "a bad row");
  trainer.no_sync(slice(data, 6, 12), mean_loss);
  EXPECT_ERROR(trainer.step(slice(data, 12, 18), fails), std::runtime_error, "a bad row");
  trainer.step(slice(data, 12, 18), mean_loss);

  expect_same_bits(values_of(calm.model()), values_of(trainer.model()));
}

TEST(NoSync, ANumberThatIsNotFiniteEndsTheStepAndItsParts) {
  const Rows data = make_rows(4);
  const auto infinite = [](const Mlp& model, const Rows& rows) {
    return mean_loss(model, rows) / (model.w1.detach() * 0).sum();
  };
  DataParallel trainer(make_mlp(), options_of(2, 2));
  DataParallel calm(make_mlp(), options_of(2, 2));
  trainer.no_sync(data, infinite);
  EXPECT_ERROR(trainer.step(data, mean_loss), NonFiniteError, "Nothing was updated");
  trainer.step(data, mean_loss);
  calm.step(data, mean_loss);
  EXPECT_TRUE(same_bits(trainer.model().w1, calm.model().w1));

  DataParallelOptions skips = options_of(2, 2);
  skips.non_finite = NonFinite::kSkip;
  DataParallel skipping(make_mlp(), skips);
  skipping.no_sync(data, infinite);
  EXPECT_TRUE(skipping.step(data, mean_loss).skipped);
  EXPECT_FALSE(skipping.step(data, mean_loss).skipped);
}

// The part is run again, on what was put back; what the parts before it have summed stays.
TEST(NoSync, APartOfFlippedParametersIsHealedAndRunAgain) {
  const Rows data = make_rows(12);
  const auto run = [&](bool flips) {
    DataParallelOptions options = options_of(2, 2);
    options.audit = {.on_drift = OnDrift::kHeal};
    options.share_parameters = false;
    DataParallel trainer(make_mlp(), options);
    trainer.step(slice(data, 0, 4), mean_loss);
    trainer.no_sync(slice(data, 4, 8), mean_loss);
    if (flips) {
      auto* const words = static_cast<std::uint32_t*>(trainer.replica(1).w1.data_ptr());
      words[70] ^= 1U << 22;
    }
    const StepReport part = trainer.no_sync(slice(data, 8, 12), mean_loss);
    EXPECT_EQ(part.healed.empty(), !flips);
    trainer.step(slice(data, 0, 4), mean_loss);
    return values_of(trainer.model());
  };
  expect_same_bits(run(false), run(true));
}

TEST(NoSync, APartOfFlippedParametersStopsWhereDriftStops) {
  DataParallel trainer(make_mlp(), options_of(2, 2));
  const Rows data = make_rows(4);
  trainer.step(data, mean_loss);
  trainer.no_sync(data, mean_loss);
  auto* const words = static_cast<std::uint32_t*>(trainer.model().w1.data_ptr());
  words[70] ^= 1U << 22;
  EXPECT_ERROR(trainer.no_sync(data, mean_loss), DriftError, "w1");
  words[70] ^= 1U << 22;
  EXPECT_EQ(trainer.step(data, mean_loss).rows, 8);
}

// In a part whose loss is finite.
TEST(NoSync, AGradientThatIsNotFiniteIsNamedWithItsDevice) {
  DataParallel trainer(make_mlp(), options_of(2, 2));
  const Rows data = make_rows(4);
  const auto poisoned = [](const Mlp& model, const Rows& rows) {
    at::Tensor loss = mean_loss(model, rows);
    if (leaf_index() == 1) loss = loss + (model.w2.flatten()[17] - model.w2.detach().flatten()[17]).sqrt();
    return loss;
  };
  trainer.no_sync(data, poisoned);
  expect_error<NonFiniteError>([&] { trainer.step(data, mean_loss); },
                               {"gradient of w2 is inf at element 17 (in the parts of step 0)", "device 1"});
}

TEST(NoSync, IsRefusedWhereItCannotKeepWhatIsPromised) {
  const Rows data = make_rows(4);
  DataParallel invariant(make_mlp(), {.global_batch = 4, .logical_shards = 2, .devices = first_devices(2)});
  EXPECT_ERROR(invariant.no_sync(data, mean_loss), InvalidArgument, "logical_shards");
  DataParallelOptions options = options_of(2, 2);
  options.compress = {.codec = compress::fp16()};
  DataParallel compressed(make_mlp(), options);
  EXPECT_ERROR(compressed.no_sync(data, mean_loss), InvalidArgument, "compress");

  DataParallel trainer(make_mlp(), options_of(2, 2));
  const guard::Checkpoint start = trainer.snapshot();
  trainer.no_sync(data, mean_loss);
  EXPECT_ERROR(trainer.snapshot(), InvalidArgument, "gradients of 4 rows");
  // Going back to a checkpoint leaves nothing of the parts behind.
  trainer.restore(start);
  trainer.step(data, mean_loss);
  DataParallel calm(make_mlp(), options_of(2, 2));
  calm.step(data, mean_loss);
  EXPECT_TRUE(same_bits(trainer.model().w1, calm.model().w1));
  EXPECT_ERROR(trainer.no_sync(make_rows(5), mean_loss), InvalidArgument, "it takes 1 to 4");
}

}  // namespace no_sync_test
}  // namespace brigade::training
