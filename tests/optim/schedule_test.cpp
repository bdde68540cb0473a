#include "brigade/optim/schedule.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "brigade/base/error.h"
#include "support/errors.h"

namespace brigade::schedule {
namespace schedule_test {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

void expect_same(const LearningRate& a, const LearningRate& b, std::int64_t steps) {
  for (std::int64_t step = 0; step < steps; ++step) EXPECT_EQ(a(step), b(step)) << "step " << step;
  EXPECT_EQ(a.describe(), b.describe());
}

TEST(Schedule, LinearScalingMultipliesTheBaseByTheBatch) {
  const Schedule schedule = linear_scaling({.base = 0.02, .base_batch = 64});
  EXPECT_DOUBLE_EQ(schedule.bind(128)(0), 0.04);
  EXPECT_DOUBLE_EQ(schedule.bind(8192)(77), 2.56);
  EXPECT_DOUBLE_EQ(schedule.bind(32)(0), 0.01);
  EXPECT_EQ(linear_scaling({.base = 0.1, .base_batch = 3}).bind(3)(0), 0.1);
}

TEST(Schedule, SqrtScalingMultipliesTheBaseByTheRootOfTheBatch) {
  const Schedule schedule = sqrt_scaling({.base = 0.003, .base_batch = 32});
  EXPECT_DOUBLE_EQ(schedule.bind(128)(0), 0.006);
  EXPECT_DOUBLE_EQ(schedule.bind(2)(5), 0.00075);
  EXPECT_DOUBLE_EQ(schedule.bind(64)(0), 0.003 * std::sqrt(2.0));
  EXPECT_EQ(schedule.bind(32)(0), 0.003);
}

TEST(Schedule, ConstantIsTheSameForEveryBatch) {
  EXPECT_EQ(constant(0.3).bind(1)(0), 0.3);
  EXPECT_EQ(constant(0.3).bind(4096)(12345), 0.3);
}

TEST(Schedule, WarmupStartsFromTheUnscaledBase) {
  const LearningRate rate = linear_scaling({.base = 0.02, .base_batch = 64}).warmup(100).bind(256);
  EXPECT_DOUBLE_EQ(rate(0), 0.02);
  EXPECT_DOUBLE_EQ(rate(50), 0.05);
  EXPECT_DOUBLE_EQ(rate(100), 0.08);
  EXPECT_DOUBLE_EQ(rate(1'000'000), 0.08);
  EXPECT_DOUBLE_EQ(sqrt_scaling({.base = 0.02, .base_batch = 64}).warmup(100).bind(256)(50), 0.03);
}

TEST(Schedule, WarmupNeverStartsAboveAScaledDownRate) {
  for (const Schedule& scaled : {linear_scaling({.base = 0.02, .base_batch = 64}).warmup(100),
                                 sqrt_scaling({.base = 0.02, .base_batch = 128}).warmup(100)}) {
    const LearningRate rate = scaled.bind(32);
    for (const std::int64_t step : {0, 50, 100}) EXPECT_DOUBLE_EQ(rate(step), 0.01);
  }
}

TEST(Schedule, WarmupOfAConstantRateStartsFromZero) {
  const LearningRate rate = constant(0.3).warmup(3).bind(64);
  EXPECT_DOUBLE_EQ(rate(0), 0);
  EXPECT_DOUBLE_EQ(rate(1), 0.1);
  EXPECT_DOUBLE_EQ(rate(3), 0.3);
}

// The cycle begins at peak / div_factor: 0.04 for 64 rows, 0.16 for 256.
TEST(Schedule, WarmupLeadsToTheFirstRateOfACurveThatStartsBelowItsPeak) {
  const LearningRate rate =
      linear_scaling({.base = 0.4, .base_batch = 64}).warmup(10).one_cycle(60, {.div_factor = 10}).bind(256);
  EXPECT_DOUBLE_EQ(rate(0), 0.04);
  EXPECT_DOUBLE_EQ(rate(5), 0.1);
  EXPECT_DOUBLE_EQ(rate(10), 0.16);
  EXPECT_DOUBLE_EQ(rate(10 + 14), 1.6);  // 0.3 of the 50 steps that are left
}

TEST(Schedule, PartsMayBeNamedInAnyOrderAndWarmupMayBeLeftOut) {
  const auto base = linear_scaling({.base = 0.02, .base_batch = 64});
  expect_same(base.warmup(10).cosine(40).bind(128), base.cosine(40).warmup(10).bind(128), 50);
  expect_same(base.cosine(40).warmup(0).bind(128), base.cosine(40).bind(128), 50);
  expect_same(base.warmup(10).inverse_sqrt().bind(128), base.inverse_sqrt().warmup(10).bind(128), 50);
}

TEST(Schedule, ALaterPartReplacesAnEarlierOne) {
  expect_same(constant(0.1).step(3).cosine(20).bind(1), constant(0.1).cosine(20).bind(1), 30);
  expect_same(constant(0.1).warmup(30).warmup(5, {.from = 0.05}).cosine(20).bind(1),
              constant(0.1).warmup(5, {.from = 0.05}).cosine(20).bind(1), 30);
}

TEST(Schedule, CallsLeaveTheirScheduleAsItWas) {
  const Schedule base = constant(0.1).linear(8);
  const LearningRate before = base.bind(1);
  (void)base.warmup(2);
  (void)base.cosine(5);
  (void)base.then(3, constant(1));
  expect_same(base.bind(1), before, 12);
  EXPECT_DOUBLE_EQ(before(2), 0.075);
}

TEST(Schedule, AJoinedScheduleSeesStepsFromTheJoin) {
  const Schedule first = constant(0.1).linear(100);
  const Schedule second = constant(0.5).warmup(3, {.from = 0.2}).step_at({5, 8});
  const LearningRate rate = first.then(20, second).bind(1);
  for (std::int64_t step = 0; step < 20; ++step) EXPECT_EQ(rate(step), first.bind(1)(step)) << step;
  for (std::int64_t step = 20; step < 60; ++step) EXPECT_EQ(rate(step), second.bind(1)(step - 20)) << step;
  EXPECT_DOUBLE_EQ(rate(19), 0.081);
  EXPECT_DOUBLE_EQ(rate(20), 0.2);
  EXPECT_DOUBLE_EQ(rate(23), 0.5);
  EXPECT_DOUBLE_EQ(rate(25), 0.05);
  EXPECT_DOUBLE_EQ(rate(std::numeric_limits<std::int64_t>::max()), 0.005);
}

TEST(Schedule, JoinsAssociate) {
  const Schedule a = constant(0.1).cosine(50);
  const Schedule b = constant(0.2).warmup(4);
  const Schedule c = constant(0.3).exponential(0.9);
  expect_same(a.then(10, b).then(25, c).bind(1), a.then(10, b.then(15, c)).bind(1), 60);
}

TEST(Schedule, JoinedSchedulesAreScaledEachByItsOwnRule) {
  const LearningRate rate = linear_scaling({.base = 0.02, .base_batch = 64})
                                .then(1, sqrt_scaling({.base = 0.02, .base_batch = 64}))
                                .then(2, constant(0.02))
                                .bind(256);
  EXPECT_DOUBLE_EQ(rate(0), 0.08);
  EXPECT_DOUBLE_EQ(rate(1), 0.04);
  EXPECT_DOUBLE_EQ(rate(2), 0.02);
}

TEST(Schedule, WarmupComesFirstAlsoWhenNamedAfterAJoin) {
  const Schedule next = constant(0.05);
  expect_same(constant(0.1).then(10, next).warmup(10).bind(1), constant(0.1).warmup(10).then(10, next).bind(1), 20);
}

TEST(Schedule, DescribesThePeakAndItsReason) {
  const auto scaled = linear_scaling({.base = 0.02, .base_batch = 64});
  EXPECT_EQ(scaled.warmup(100).cosine(2345).bind(128).describe(),
            "0.04 = 0.02 × 128/64, warm-up over 100 steps from 0.02, then cosine to 0 at step 2345");
  EXPECT_EQ(scaled.warmup(100).bind(64).describe(),
            "0.02 = 0.02 × 64/64, held for 100 steps as there is nothing to warm up to, then constant");
  EXPECT_EQ(constant(0.1).bind(64).describe(), "0.1, constant");
  EXPECT_EQ(linear_scaling({.base = 0.1, .base_batch = 1}).bind(3).describe(), "0.3 = 0.1 × 3/1, constant");
  EXPECT_EQ(sqrt_scaling({.base = 0.001, .base_batch = 32}).bind(128).describe(),
            "0.002 = 0.001 × √(128/32), constant");
  EXPECT_EQ(constant(0.1).warmup(1).bind(1).describe(), "0.1, warm-up over 1 step from 0, then constant");
}

TEST(Schedule, DescribesEachCurve) {
  const auto text = [](const Schedule& schedule) { return schedule.bind(64).describe(); };
  const Schedule s = constant(0.4);
  EXPECT_EQ(text(s.step(30)), "0.4, × 0.1 every 30 steps");
  EXPECT_EQ(text(s.step(1, {.gamma = 0.5})), "0.4, × 0.5 every step");
  EXPECT_EQ(text(s.step_at({30})), "0.4, × 0.1 at step 30");
  EXPECT_EQ(text(s.step_at({30, 60})), "0.4, × 0.1 at steps 30 and 60");
  EXPECT_EQ(text(s.step_at({1, 2, 3, 4, 5, 6})), "0.4, × 0.1 at steps 1, 2, 3, 4, 5 and 6");
  EXPECT_EQ(text(s.step_at({1, 2, 3, 4, 5, 6, 90})), "0.4, × 0.1 at steps 1, 2, 3 and 4 more up to 90");
  EXPECT_EQ(text(s.exponential(0.99)), "0.4, exponential, × 0.99 a step");
  EXPECT_EQ(text(s.exponential(0.5, {.every = 100})), "0.4, exponential, × 0.5 in 100 steps");
  EXPECT_EQ(text(s.cosine(20, {.to = 0.01})), "0.4, cosine to 0.01 at step 20");
  EXPECT_EQ(text(s.linear(20)), "0.4, linear to 0 at step 20");
  EXPECT_EQ(text(s.polynomial(20, {.power = 2})), "0.4, polynomial of power 2 to 0 at step 20");
  EXPECT_EQ(text(s.inverse_sqrt()), "0.4, inverse square root, time scale 1 step");
  EXPECT_EQ(text(s.warmup(4000).inverse_sqrt()),
            "0.4, warm-up over 4000 steps from 0, then inverse square root, time scale 4000 steps");
  EXPECT_EQ(text(s.one_cycle(100)),
            "0.4, one cosine cycle from 0.016 up to 0.4 at step 29, then down to 1.6e-06 at step 99");
  EXPECT_EQ(
      text(s.one_cycle(31, {.anneal = Anneal::kLinear, .three_phase = true})),
      "0.4, one linear cycle from 0.016 up to 0.4 near step 8, down to 0.016 near step 17, then to 1.6e-06 at step "
      "30");
  EXPECT_EQ(text(s.warmup(10).one_cycle(110)),
            "0.4, warm-up over 10 steps from 0 to 0.016, then one cosine cycle from 0.016 up to 0.4 at step 39, then "
            "down to 1.6e-06 at step 109");
}

TEST(Schedule, DescribesJoinedSchedulesWithTheStepsOfTheRun) {
  EXPECT_EQ(constant(0.1)
                .warmup(5)
                .then(10, linear_scaling({.base = 0.2, .base_batch = 8}).cosine(20))
                .then(30, constant(0.1).step_at({5, 10}))
                .then(50, constant(0.4).one_cycle(100))
                .bind(16)
                .describe(),
            "0.1, warm-up over 5 steps from 0, then constant; from step 10: 0.4 = 0.2 × 16/8, cosine to 0 at step 30; "
            "from step 30: 0.1, × 0.1 at steps 35 and 40; from step 50: 0.4, one cosine cycle from 0.016 up to 0.4 at "
            "step 79, then down to 1.6e-06 at step 149");
}

TEST(Schedule, RefusesPeaksThatCannotBe) {
  for (const double rate : {0.0, -0.1, kNan, kInfinity}) {
    EXPECT_ERROR(constant(rate), InvalidArgument, "give a finite number above 0");
    EXPECT_ERROR(linear_scaling({.base = rate, .base_batch = 64}), InvalidArgument, "the base rate is");
    EXPECT_ERROR(sqrt_scaling({.base = rate, .base_batch = 64}), InvalidArgument, "the base rate is");
  }
  EXPECT_ERROR(linear_scaling({.base = 0.1}), InvalidArgument, "base_batch is 0");
  EXPECT_ERROR(sqrt_scaling({.base = 0.1, .base_batch = -3}), InvalidArgument, "base_batch is -3");
  EXPECT_ERROR(constant(0.1).bind(0), InvalidArgument, "steps of 0 rows");
  EXPECT_ERROR(linear_scaling({.base = 1e308, .base_batch = 1}).bind(64), InvalidArgument,
               "the rate for steps of 64 rows is inf");
}

TEST(Schedule, RefusesCurvesThatCannotBe) {
  const Schedule s = constant(0.1);
  EXPECT_ERROR(s.step(0), InvalidArgument, "`every` of a step schedule is 0: give 1 or more");
  EXPECT_ERROR(s.step(5, {.gamma = 0}), InvalidArgument, "gamma of a step schedule is 0");
  EXPECT_ERROR(s.step_at({}), InvalidArgument, "step_at has no milestones");
  EXPECT_ERROR(s.step_at({0, 3}), InvalidArgument, "the first milestone is 0");
  EXPECT_ERROR(s.step_at({5, 3}), InvalidArgument, "milestone 5 is followed by 3");
  EXPECT_ERROR(s.step_at({3, 3}), InvalidArgument, "milestone 3 is followed by 3");
  EXPECT_ERROR(s.step_at({3}, {.gamma = kNan}), InvalidArgument, "gamma of a step schedule is nan");
  EXPECT_ERROR(s.exponential(0), InvalidArgument, "gamma of an exponential schedule is 0");
  EXPECT_ERROR(s.exponential(0.9, {.every = -1}), InvalidArgument, "`every` of an exponential schedule is -1");
  EXPECT_ERROR(s.cosine(0), InvalidArgument, "total_steps of a cosine is 0: give 1 or more");
  EXPECT_ERROR(s.cosine(10, {.to = kNan}), InvalidArgument, "the rate that a cosine ends at is nan");
  EXPECT_ERROR(s.linear(-4), InvalidArgument, "total_steps of a line is -4");
  EXPECT_ERROR(s.linear(10, {.to = -1}), InvalidArgument, "the rate that a line ends at is -1");
  EXPECT_ERROR(s.polynomial(0), InvalidArgument, "total_steps of a polynomial is 0");
  EXPECT_ERROR(s.polynomial(9, {.power = 0}), InvalidArgument, "the power of a polynomial is 0");
  EXPECT_ERROR(s.polynomial(9, {.to = kInfinity}), InvalidArgument, "the rate that a polynomial ends at is inf");
  EXPECT_ERROR(s.inverse_sqrt({.time_scale = 0}), InvalidArgument, "time_scale of an inverse square root is 0");
  EXPECT_ERROR(s.one_cycle(0), InvalidArgument, "total_steps of one cycle is 0");
  EXPECT_ERROR(s.one_cycle(9, {.pct_start = 1}), InvalidArgument, "pct_start is 1");
  EXPECT_ERROR(s.one_cycle(9, {.pct_start = kNan}), InvalidArgument, "pct_start is nan");
  EXPECT_ERROR(s.one_cycle(9, {.pct_start = 0.6, .three_phase = true}), InvalidArgument, "give 0 to 0.5");
  EXPECT_ERROR(s.one_cycle(9, {.div_factor = 0}), InvalidArgument, "div_factor of one cycle is 0");
  EXPECT_ERROR(s.one_cycle(9, {.final_div_factor = -1}), InvalidArgument, "final_div_factor of one cycle is -1");
}

TEST(Schedule, RefusesStepsThatADoubleCannotCount) {
  constexpr std::int64_t kMost = std::int64_t{1} << 53;
  const Schedule s = constant(0.1);
  EXPECT_ERROR(s.cosine(kMost + 1), InvalidArgument, "steps are counted up to 9007199254740992");
  EXPECT_ERROR(s.step(kMost + 1), InvalidArgument, "steps are counted up to");
  EXPECT_ERROR(s.step_at({3, kMost + 1}), InvalidArgument, "the last milestone is 9007199254740993");
  EXPECT_ERROR(s.then(kMost, s.then(1, s)), InvalidArgument, "the step of a join is 9007199254740993");
  EXPECT_DOUBLE_EQ(s.linear(kMost).bind(1)(kMost / 2), 0.05);
}

TEST(Schedule, RefusesWarmupsThatCannotBe) {
  const Schedule s = constant(0.1);
  EXPECT_ERROR(s.warmup(-1), InvalidArgument, "warm-up over -1 steps");
  EXPECT_ERROR(s.warmup(5, {.from = -1.0}), InvalidArgument, "starts from is -1");
  EXPECT_ERROR(s.warmup(5, {.from = kInfinity}), InvalidArgument, "starts from is inf");
  EXPECT_ERROR(s.warmup(10).cosine(10), InvalidArgument, "warm-up over 10 steps leaves nothing of a cosine");
  EXPECT_ERROR(s.cosine(10).warmup(11), InvalidArgument, "ends at step 10");
  EXPECT_ERROR(s.linear(10).warmup(10), InvalidArgument, "leaves nothing of a line");
  EXPECT_ERROR(s.warmup(10).polynomial(3), InvalidArgument, "leaves nothing of a polynomial");
  EXPECT_ERROR(s.warmup(10).one_cycle(10), InvalidArgument, "leaves nothing of one cycle");
  EXPECT_ERROR(s.warmup(10).step_at({10, 20}), InvalidArgument, "before the milestone at step 10");
}

TEST(Schedule, RefusesJoinsThatCannotBe) {
  const Schedule s = constant(0.1);
  EXPECT_ERROR(s.then(0, s), InvalidArgument, "the step of a join is 0");
  EXPECT_ERROR(s.then(10, s).then(10, s), InvalidArgument, "a join at step 10 comes before the one at step 10");
  EXPECT_ERROR(s.then(10, s.then(5, s)).then(12, s), InvalidArgument, "comes before the one at step 15");
  EXPECT_ERROR(s.warmup(10).then(9, s), InvalidArgument, "at step 10 or after");
  EXPECT_ERROR(s.then(9, s).warmup(10), InvalidArgument, "too short for its warm-up over 10");
  EXPECT_ERROR(s.then(10, s.warmup(4)).then(13, s), InvalidArgument, "at step 14 or after");
  EXPECT_ERROR(s.then(10, s).cosine(20), InvalidArgument, "cosine() after then()");
  EXPECT_ERROR(s.then(10, s).step_at({3}), InvalidArgument, "step_at() after then()");
}

TEST(Schedule, RefusesStepsBelowZeroAndRatesThatAreTooLarge) {
  const Schedule s = constant(0.1);
  for (const Schedule& schedule : {s, s.warmup(3), s.cosine(10), s.one_cycle(4), s.then(3, s)}) {
    EXPECT_ERROR(schedule.bind(64)(-1), InvalidArgument, "no step -1");
    EXPECT_ERROR(schedule.bind(64)(std::numeric_limits<std::int64_t>::min()), InvalidArgument, "steps count from 0");
  }
  const LearningRate growing = s.exponential(10).bind(1);
  EXPECT_DOUBLE_EQ(growing(300), 1e299);
  EXPECT_ERROR(growing(400), InvalidArgument, "the rate of step 400 is inf");
}

}  // namespace schedule_test
}  // namespace brigade::schedule
