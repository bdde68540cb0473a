// Each curve against its closed form, at its borders, far past its end and after a warm-up.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <numbers>
#include <string>
#include <vector>

#include "brigade/optim/schedule.h"

namespace brigade::schedule {
namespace schedule_curves_test {

constexpr std::int64_t kFar = 1'000'000'000'000;
constexpr std::int64_t kLastStep = std::numeric_limits<std::int64_t>::max();

LearningRate bound(const Schedule& schedule) { return schedule.bind(64); }

TEST(ScheduleCurves, StepMultipliesAfterEverySoManySteps) {
  const LearningRate rate = bound(constant(0.8).step(3, {.gamma = 0.5}));
  double expected = 0.8;
  for (std::int64_t step = 0; step < 40; ++step) {
    if (step > 0 && step % 3 == 0) expected *= 0.5;
    EXPECT_DOUBLE_EQ(rate(step), expected) << step;
  }
  EXPECT_EQ(rate(kLastStep), 0);
  EXPECT_DOUBLE_EQ(bound(constant(0.8).step(30))(30), 0.08);
}

TEST(ScheduleCurves, StepAtMultipliesFromEachMilestoneOn) {
  const LearningRate rate = bound(constant(0.8).step_at({1, 5, 6}, {.gamma = 0.25}));
  const std::vector<double> expected = {0.8, 0.2, 0.2, 0.2, 0.2, 0.05, 0.0125, 0.0125};
  for (std::size_t step = 0; step < expected.size(); ++step) {
    EXPECT_DOUBLE_EQ(rate(static_cast<std::int64_t>(step)), expected[step]) << step;
  }
  EXPECT_DOUBLE_EQ(rate(kLastStep), 0.0125);
}

TEST(ScheduleCurves, ExponentialMultipliesALittleEveryStep) {
  const LearningRate each = bound(constant(0.3).exponential(0.9));
  const LearningRate fourth = bound(constant(0.3).exponential(0.5, {.every = 4}));
  double expected = 0.3;
  for (std::int64_t step = 0; step < 50; ++step, expected *= 0.9) {
    EXPECT_NEAR(each(step), expected, 1e-14 * expected) << step;
    EXPECT_NEAR(std::pow(fourth(step) / 0.3, 4), std::pow(0.5, step), 1e-14 * std::pow(0.5, step)) << step;
  }
  EXPECT_EQ(each(kLastStep), 0);
}

TEST(ScheduleCurves, CosineIsHalfACosine) {
  const LearningRate rate = bound(constant(0.3).cosine(12, {.to = 0.02}));
  for (std::int64_t step = 0; step <= 12; ++step) {
    const double angle = std::numbers::pi * static_cast<double>(step) / 12;
    EXPECT_NEAR(rate(step), 0.02 + 0.28 * (1 + std::cos(angle)) / 2, 1e-15) << step;
  }
  EXPECT_DOUBLE_EQ(bound(constant(0.4).cosine(300))(100), 0.3);  // cos 60° = 1/2
}

// (1 + cos) / 2 by itself would lose every digit here: with n steps the rate one step before the end is (π / 2n)².
TEST(ScheduleCurves, CosineKeepsItsDigitsNearZero) {
  constexpr std::int64_t kSteps = 1'000'000'000;
  const double left = std::numbers::pi / 2 / static_cast<double>(kSteps);
  EXPECT_DOUBLE_EQ(bound(constant(1.0).cosine(kSteps))(kSteps - 1), left * left);
}

TEST(ScheduleCurves, LinearIsAStraightLine) {
  const LearningRate rate = bound(constant(0.5).linear(8, {.to = 0.1}));
  for (std::int64_t step = 0; step <= 8; ++step) {
    EXPECT_DOUBLE_EQ(rate(step), 0.5 - 0.05 * static_cast<double>(step)) << step;
  }
}

TEST(ScheduleCurves, PolynomialIsAPowerOfWhatIsLeft) {
  const LearningRate cubic = bound(constant(2.0).polynomial(10, {.power = 3, .to = 1}));
  const LearningRate root = bound(constant(1.0).polynomial(16, {.power = 0.5}));
  for (std::int64_t step = 0; step <= 10; ++step) {
    const double left = 1 - static_cast<double>(step) / 10;
    EXPECT_DOUBLE_EQ(cubic(step), 1 + left * left * left) << step;
  }
  EXPECT_DOUBLE_EQ(root(12), 0.5);
  const LearningRate line = bound(constant(0.3).linear(7, {.to = 0.1}));
  const LearningRate first_power = bound(constant(0.3).polynomial(7, {.to = 0.1}));
  for (std::int64_t step = 0; step < 9; ++step) EXPECT_EQ(first_power(step), line(step));
}

// A. Vaswani et al. (2017), section 5.3: d^-0.5 * min(s^-0.5, s * w^-1.5), with s from 1.
TEST(ScheduleCurves, InverseSqrtAfterAWarmupIsThatOfTransformers) {
  constexpr double kModel = 512;
  constexpr double kWarmup = 40;
  const LearningRate rate = bound(constant(1 / std::sqrt(kModel * kWarmup)).warmup(40).inverse_sqrt());
  for (std::int64_t step = 1; step < 400; ++step) {
    const auto s = static_cast<double>(step);
    const double expected = std::min(1 / std::sqrt(s), s * std::pow(kWarmup, -1.5)) / std::sqrt(kModel);
    EXPECT_NEAR(rate(step), expected, 1e-14 * expected) << step;
  }
}

TEST(ScheduleCurves, InverseSqrtTakesATimeScaleOrCountsFromOne) {
  const LearningRate scaled = bound(constant(0.6).warmup(5).inverse_sqrt({.time_scale = 100}));
  EXPECT_DOUBLE_EQ(scaled(5), 0.6);
  EXPECT_DOUBLE_EQ(scaled(5 + 100), 0.6 / std::numbers::sqrt2);
  EXPECT_DOUBLE_EQ(scaled(5 + 300), 0.3);
  const LearningRate plain = bound(constant(0.6).inverse_sqrt());
  for (const std::int64_t step : {0, 1, 8, 99}) {
    EXPECT_DOUBLE_EQ(plain(step), 0.6 / std::sqrt(static_cast<double>(step + 1))) << step;
  }
  EXPECT_NEAR(plain(kLastStep), 0.6 * std::exp2(-31.5), 1e-20);
}

TEST(ScheduleCurves, OneCycleOfTwoPhasesRisesAndFalls) {
  // From 0.5 at step 0 to 1 at step 4, then to 0.1 at step 9.
  const OneCycleOptions line{.pct_start = 0.5, .div_factor = 2, .final_div_factor = 5, .anneal = Anneal::kLinear};
  const LearningRate linear = bound(constant(1.0).one_cycle(10, line));
  const std::vector<double> expected = {0.5, 0.625, 0.75, 0.875, 1, 0.82, 0.64, 0.46, 0.28, 0.1, 0.1};
  for (std::size_t step = 0; step < expected.size(); ++step) {
    EXPECT_DOUBLE_EQ(linear(static_cast<std::int64_t>(step)), expected[step]) << step;
  }
  const LearningRate cosine =
      bound(constant(1.0).one_cycle(11, {.pct_start = 5.0 / 11, .div_factor = 2, .final_div_factor = 5}));
  EXPECT_DOUBLE_EQ(cosine(0), 0.5);
  EXPECT_DOUBLE_EQ(cosine(1), 0.5 + 0.5 * (1 - std::numbers::sqrt2 / 2) / 2);
  EXPECT_DOUBLE_EQ(cosine(2), 0.75);
  EXPECT_DOUBLE_EQ(cosine(4), 1);
  EXPECT_DOUBLE_EQ(cosine(6), 0.1 + 0.9 * 0.75);  // a third of the way: cos 60° = 1/2
  EXPECT_DOUBLE_EQ(cosine(7), 0.55);
  EXPECT_DOUBLE_EQ(cosine(10), 0.1);
}

TEST(ScheduleCurves, OneCycleOfThreePhasesComesBackBeforeItsTail) {
  // 0.5 at step 0, 1 at step 3, 0.5 at step 6, 0.2 at step 9.
  const LearningRate rate = bound(constant(1.0).one_cycle(
      10,
      {.pct_start = 0.4, .div_factor = 2, .final_div_factor = 2.5, .anneal = Anneal::kLinear, .three_phase = true}));
  const std::vector<double> expected = {0.5, 2 / 3.0, 5 / 6.0, 1, 5 / 6.0, 2 / 3.0, 0.5, 0.4, 0.3, 0.2, 0.2};
  for (std::size_t step = 0; step < expected.size(); ++step) {
    EXPECT_DOUBLE_EQ(rate(static_cast<std::int64_t>(step)), expected[step]) << step;
  }
}

TEST(ScheduleCurves, OneCycleWithoutRoomToRiseStartsAtThePeakOrBelow) {
  EXPECT_DOUBLE_EQ(bound(constant(0.4).one_cycle(10, {.pct_start = 0.1}))(0), 0.4);
  // The peak lies one step before step 0, a tenth of the way to step 9.
  EXPECT_DOUBLE_EQ(bound(constant(0.4).one_cycle(
                       10, {.pct_start = 0, .div_factor = 2, .final_div_factor = 2, .anneal = Anneal::kLinear}))(0),
                   0.37);
  EXPECT_DOUBLE_EQ(bound(constant(0.4).one_cycle(1, {.div_factor = 4, .final_div_factor = 2}))(0), 0.05);
}

TEST(ScheduleCurves, EndExactlyAtTheirLastRateAndStayThere) {
  const double peak = 0.1 + 0.2;  // no short fraction
  const double to = 0.7 / 9;
  for (const std::int64_t total : {1, 2, 3, 7, 1000}) {
    for (const Schedule& schedule : {constant(peak).cosine(total, {.to = to}), constant(peak).linear(total, {.to = to}),
                                     constant(peak).polynomial(total, {.power = 2.5, .to = to})}) {
      const LearningRate rate = bound(schedule);
      EXPECT_EQ(rate(0), peak);
      if (total > 1) {
        EXPECT_GT(rate(total - 1), to);
      }
      for (const std::int64_t step : {total, total + 1, kFar, kLastStep}) EXPECT_EQ(rate(step), to) << step;
    }
    const LearningRate cycle = bound(constant(peak).one_cycle(total));
    for (const std::int64_t step : {total - 1, total, kFar, kLastStep}) {
      EXPECT_DOUBLE_EQ(cycle(step), peak / 25 / 1e4) << step;
    }
  }
  EXPECT_EQ(bound(constant(peak))(kLastStep), peak);
}

TEST(ScheduleCurves, MayRiseToALargerRate) {
  const LearningRate rate = bound(constant(0.1).linear(4, {.to = 0.5}));
  for (std::int64_t step = 0; step <= 4; ++step) {
    EXPECT_DOUBLE_EQ(rate(step), 0.1 * static_cast<double>(step + 1)) << step;
  }
  EXPECT_DOUBLE_EQ(bound(constant(0.1).cosine(10, {.to = 0.5}))(5), 0.3);
  EXPECT_DOUBLE_EQ(bound(constant(0.1).exponential(2))(10), 102.4);
}

// A curve after a warm-up is the curve itself some steps later: what names steps by their number moves with it.
TEST(ScheduleCurves, FollowAWarmupOfAnyLength) {
  struct Kind {
    std::string name;
    std::function<Schedule(const Schedule&, std::int64_t)> add;  // the curve, `later` steps later
  };
  const std::vector<Kind> kinds = {
      {"constant", [](const Schedule& s, std::int64_t) { return s; }},
      {"step", [](const Schedule& s, std::int64_t) { return s.step(4, {.gamma = 0.3}); }},
      {"step_at",
       [](const Schedule& s, std::int64_t later) {
         return s.step_at({later + 1, later + 9}, {.gamma = 0.3});
       }},
      {"exponential", [](const Schedule& s, std::int64_t) { return s.exponential(0.8, {.every = 3}); }},
      {"cosine", [](const Schedule& s, std::int64_t later) { return s.cosine(later + 20, {.to = 0.01}); }},
      {"linear", [](const Schedule& s, std::int64_t later) { return s.linear(later + 20, {.to = 0.01}); }},
      {"polynomial", [](const Schedule& s, std::int64_t later) { return s.polynomial(later + 20, {.power = 2}); }},
      {"one_cycle", [](const Schedule& s, std::int64_t later) { return s.one_cycle(later + 20); }},
      {"one_cycle of three",
       [](const Schedule& s, std::int64_t later) { return s.one_cycle(later + 20, {.three_phase = true}); }},
      {"inverse_sqrt", [](const Schedule& s, std::int64_t) { return s.inverse_sqrt({.time_scale = 6}); }},
  };
  for (const Kind& kind : kinds) {
    for (const std::int64_t warmup : {1, 2, 7, 100}) {
      SCOPED_TRACE(kind.name + " after a warm-up over " + std::to_string(warmup));
      const LearningRate plain = bound(kind.add(constant(0.7), 0));
      const LearningRate from_low = bound(kind.add(constant(0.7).warmup(warmup, {.from = 0.002}), warmup));
      const LearningRate from_zero = bound(kind.add(constant(0.7), warmup).warmup(warmup));
      for (std::int64_t step = 0; step < warmup; ++step) {
        const double share = static_cast<double>(step) / static_cast<double>(warmup);
        EXPECT_NEAR(from_low(step), 0.002 + (plain(0) - 0.002) * share, 1e-15) << step;
        EXPECT_NEAR(from_zero(step), plain(0) * share, 1e-15) << step;
      }
      for (std::int64_t step = 0; step < 40; ++step) {
        EXPECT_EQ(from_low(warmup + step), plain(step)) << step;
        EXPECT_EQ(from_zero(warmup + step), plain(step)) << step;
      }
    }
  }
}

}  // namespace schedule_curves_test
}  // namespace brigade::schedule
