// Losses and gradients that are no numbers, loss scaling, the noise scale, options that do not go together.
#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "brigade/base/error.h"
#include "brigade/optim/adam.h"
#include "brigade/train/leaf.h"
#include "support/errors.h"
#include "train/support.h"

namespace brigade::training {
namespace non_finite_test {

using namespace testing;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// An infinity in the gradient of one element of w2 in leaf `villain`, while the loss is finite.
auto poisoned(std::int64_t villain) {
  return [villain](const Mlp& model, const Rows& rows) {
    at::Tensor loss = mean_loss(model, rows);
    // The derivative of the square root at zero.
    if (leaf_index() == villain) loss = loss + (model.w2.flatten()[17] - model.w2.detach().flatten()[17]).sqrt();
    return loss;
  };
}

TEST(NonFinite, GradientsStopTheStepBeforeAnythingChanges) {
  for (const int count : {1, 2, 3}) {
    DataParallel trainer(
        make_mlp(),
        {.optimizer = optim::adam({}), .global_batch = 12, .logical_shards = 6, .devices = first_devices(count)});
    trainer.step(make_rows(12), mean_loss);
    const auto before = values_of(trainer.model());
    expect_error<NonFiniteError>([&] { trainer.step(make_rows(12, 1), poisoned(5)); },
                                 {"gradient of w2 is inf at element 17", "step 1", "Nothing was updated",
                                  "device " + std::to_string(count - 1)});
    expect_same_bits(before, values_of(trainer.model()));
    EXPECT_FALSE(trainer.step(make_rows(12, 1), mean_loss).skipped);
  }
}

TEST(NonFinite, StepsAreSkippedByAllDevicesAlike) {
  std::vector<at::Tensor> first;
  for (const int count : {1, 2, 3}) {
    DataParallel trainer(make_mlp(), {.optimizer = optim::adam({}),
                                      .global_batch = 12,
                                      .logical_shards = 6,
                                      .devices = first_devices(count),
                                      .non_finite = NonFinite::kSkip});
    for (int step = 0; step < 6; ++step) {
      const StepReport report = trainer.step(make_rows(12, step), poisoned(step % 3 == 1 ? step : -1));
      EXPECT_EQ(report.skipped, step % 3 == 1);
    }
    const auto values = values_of(trainer.model());
    if (first.empty()) first = values;
    expect_same_bits(values, first);
  }
}

TEST(NonFinite, LossesAreNamedByLeaf) {
  DataParallel trainer(make_mlp(), {.per_device_batch = 2, .devices = first_devices(3)});
  EXPECT_ERROR(trainer.step(make_rows(6),
                            [](const Mlp& model, const Rows& rows) {
                              return mean_loss(model, rows) * (leaf_index() == 1 ? kInfinity : 1.0);
                            }),
               NonFiniteError, "the loss of leaf 1 of step 0 is not finite");
}

// Against the rule of torch.cuda.amp.GradScaler: back off at once, grow after so many good steps.
TEST(LossScaling, BacksOffAndGrowsAsOneDecision) {
  DataParallel trainer(make_mlp(), {.per_device_batch = 2,
                                    .devices = first_devices(3),
                                    .loss_scale = {.initial = 1024, .growth = 4, .backoff = 0.25, .interval = 3}});
  std::vector<double> scales;
  for (int step = 0; step < 9; ++step) {
    const StepReport report = trainer.step(make_rows(6, step), poisoned(step == 4 ? 2 : -1));
    EXPECT_EQ(report.skipped, step == 4);
    scales.push_back(report.loss_scale);
  }
  EXPECT_EQ(scales, (std::vector<double>{1024, 1024, 1024, 4096, 4096, 1024, 1024, 1024, 4096}));
}

TEST(LossScaling, ByAPowerOfTwoKeepsAllBits) {
  std::vector<at::Tensor> first;
  for (const double scale : {1.0, 1024.0}) {
    DataParallel trainer(make_mlp(), {.learning_rate = schedule::constant(0.1),
                                      .per_device_batch = 4,
                                      .devices = first_devices(3),
                                      .loss_scale = {.initial = scale}});
    for (int step = 0; step < 3; ++step) trainer.step(make_rows(12, step), mean_loss);
    const auto values = values_of(trainer.model());
    if (first.empty()) first = values;
    expect_same_bits(values, first);
  }
}

// loss = |w - x|^2 / 2 over rows x ~ N(m, s^2): the gradient is w - m, its noise s^2 in each of d dimensions, so the noise
// scale is d s^2 / |w - m|^2.
TEST(NoiseScaleOf, AQuadraticIsThatOfItsClosedForm) {
  struct Point {
    at::Tensor w;
  };
  constexpr std::int64_t kDimensions = 50;
  constexpr double kSpread = 2, kDistance = 3;
  DataParallel trainer(Point{at::zeros({kDimensions})}, {.learning_rate = schedule::constant(1e-12),
                                                         .global_batch = 64,
                                                         .logical_shards = 8,
                                                         .devices = first_devices(4),
                                                         .noise_scale_every = 1});
  std::optional<double> measured;
  for (int step = 0; step < 200; ++step) {
    const at::Tensor x = kSpread * random::normal(random::fold_in(random::key(5), step), {64, kDimensions}) +
                         kDistance / std::sqrt(static_cast<double>(kDimensions));
    measured =
        trainer.step(x, [](const Point& p, const at::Tensor& rows) { return (p.w - rows).square().sum(1).mean() / 2; })
            .noise_scale;
  }
  const double expected = kDimensions * kSpread * kSpread / (kDistance * kDistance);
  ASSERT_TRUE(measured);
  EXPECT_NEAR(*measured, expected, 0.15 * expected);
}

TEST(Options, ThatDoNotGoTogetherAreRefused) {
  const auto refused = [](const DataParallelOptions& options, const std::string& why) {
    EXPECT_ERROR(DataParallel(make_mlp(), options), InvalidArgument, why);
  };
  refused({}, "how many rows has a step");
  refused({.per_device_batch = 4, .global_batch = 32, .logical_shards = 8},
          "per_device_batch and accumulate stand beside");
  refused({.accumulate = 2, .global_batch = 32, .logical_shards = 8}, "per_device_batch and accumulate stand beside");
  refused({.logical_shards = 8}, "needs a global_batch");
  refused({.global_batch = 30, .logical_shards = 8}, "24 or 32 rows can");
  refused({.global_batch = 16, .logical_shards = 2, .devices = first_devices(3)}, "3 devices for 2 logical_shards");
  refused({.global_batch = 10, .devices = first_devices(3)}, "cannot be cut equally for 3 devices");
  refused({.per_device_batch = 3, .global_batch = 12, .devices = first_devices(3)}, "contradict each other");
  refused({.per_device_batch = 3, .accumulate = 0}, "accumulate is 0");
}

TEST(ABatch, ThatCannotBeCutIsRefused) {
  DataParallel trainer(make_mlp(), {.per_device_batch = 2, .devices = first_devices(2)});
  EXPECT_ERROR(trainer.step(make_rows(5), mean_loss), InvalidArgument, "a step of 5 rows; it takes 1 to 4");
  EXPECT_ERROR(trainer.step(Rows{at::ones({4, 70}), at::ones({3}, at::kLong)}, mean_loss), ShapeError,
               "one has 3 where another has 4");
  EXPECT_ERROR(trainer.step(Rows{at::ones({}), at::ones({3}, at::kLong)}, mean_loss), ShapeError, "(argument x");
}

TEST(ALoss, ThatIsNoneIsRefused) {
  DataParallel trainer(make_mlp(), {.per_device_batch = 2, .devices = first_devices(2)});
  EXPECT_ERROR(trainer.step(make_rows(4), [](const Mlp& m, const Rows& r) { return m(r.x); }), InvalidArgument,
               "must be one floating-point number, and is Float[2, 5]");
  EXPECT_ERROR(trainer.step(make_rows(4), [](const Mlp& m, const Rows& r) { return mean_loss(m, r).detach(); }),
               InvalidArgument, "does not depend on any parameter");
  EXPECT_ERROR(trainer.step(make_rows(4), [](const Mlp& m, const Rows& r) { return mean_over(mean_loss(m, r), -1); }),
               InvalidArgument, "over -1 things");
}

// What a loss throws reaches the caller as it is, and the step has not happened.
TEST(AStep, ThatThrowsHasNotHappened) {
  DataParallel trainer(
      make_mlp(), {.optimizer = optim::adam({}), .global_batch = 12, .logical_shards = 6, .devices = first_devices(3)});
  DataParallel calm(
      make_mlp(), {.optimizer = optim::adam({}), .global_batch = 12, .logical_shards = 6, .devices = first_devices(3)});
  for (int step = 0; step < 5; ++step) {
    for (std::int64_t villain = 0; villain < 6; ++villain) {
      EXPECT_ERROR(trainer.step(make_rows(12, step + 1),
                                [&](const Mlp& m, const Rows& r) {
                                  if (leaf_index() == villain) throw std::range_error("out of reach");
                                  return mean_loss(m, r);
                                }),
                   std::range_error, "out of reach");
    }
    EXPECT_EQ(trainer.step(make_rows(12, step), mean_loss).loss, calm.step(make_rows(12, step), mean_loss).loss);
  }
  expect_same_bits(values_of(trainer.model()), values_of(calm.model()));
}

}  // namespace non_finite_test
}  // namespace brigade::training
