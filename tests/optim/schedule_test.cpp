#include "brigade/optim/schedule.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "brigade/base/error.h"
#include "support/cases.h"
#include "support/errors.h"

namespace brigade::schedule {
namespace {

void expect_values(const LearningRate& rate, const std::vector<double>& expected, double relative) {
  for (std::size_t step = 0; step < expected.size(); ++step) {
    EXPECT_NEAR(rate(static_cast<std::int64_t>(step)), expected[step], relative * expected[step]) << "step " << step;
  }
}

// The value of `key` in "name(a=1, b=2)".
double argument(const std::string& call, const std::string& key) {
  const auto at = call.find(key + "=");
  if (at == std::string::npos) throw std::out_of_range(key + " is not in " + call);
  return std::stod(call.substr(at + key.size() + 1));
}

TEST(Schedule, CosineAndWarmupFollowJax) {
  int checked = 0;
  const nlohmann::json file = cases::load("jax/optim.json");
  for (const nlohmann::json& recorded : file.at("cases")) {
    const auto name = recorded.value("schedule", std::string());
    const auto rate = [&](const char* key) { return argument(name, key); };
    const auto steps = [&](const char* key) { return static_cast<std::int64_t>(argument(name, key)); };
    if (name.starts_with("cosine(")) {
      const auto schedule = constant(rate("init")).cosine(steps("decay_steps"), {.to = rate("init") * rate("alpha")});
      expect_values(schedule.bind(1), recorded.at("value_at_step"), 2e-6);
      ++checked;
    } else if (name.starts_with("warmup_cosine(")) {
      const auto schedule = constant(rate("peak"))
                                .warmup(steps("warmup_steps"), {.from = rate("init")})
                                .cosine(steps("decay_steps"), {.to = rate("end")});
      expect_values(schedule.bind(1), recorded.at("value_at_step"), 2e-6);
      ++checked;
    }
  }
  EXPECT_EQ(checked, 2);
}

TEST(Schedule, CosineAndWarmupFollowTorch) {
  int checked = 0;
  const nlohmann::json file = cases::load("torch/schedules.json");
  for (const nlohmann::json& recorded : file.at("cases")) {
    const auto name = recorded.at("schedule").get<std::string>();
    const nlohmann::json& args = recorded.at("args");
    const double base = recorded.at("base_lr");
    std::vector<double> expected = recorded.at("value_at_step");
    if (name == "CosineAnnealingLR") {
      const std::int64_t total = args.at("T_max");
      expected.resize(static_cast<std::size_t>(total) + 1);  // torch's goes up again behind it
      expect_values(constant(base).cosine(total, {.to = args.at("eta_min")}).bind(1), expected, 1e-12);
      ++checked;
    } else if (name == "LinearLR") {
      ASSERT_EQ(args.at("end_factor"), 1.0);
      const double from = base * args.at("start_factor").get<double>();
      expect_values(constant(base).warmup(args.at("total_iters"), {.from = from}).bind(1), expected, 1e-12);
      ++checked;
    }
  }
  EXPECT_EQ(checked, 2);
}

TEST(Schedule, LinearScalingMultipliesTheBaseByTheBatch) {
  const Schedule schedule = linear_scaling({.base = 0.02, .base_batch = 64});
  EXPECT_DOUBLE_EQ(schedule.bind(128)(0), 0.04);
  EXPECT_DOUBLE_EQ(schedule.bind(8192)(77), 2.56);
  EXPECT_DOUBLE_EQ(schedule.bind(32)(0), 0.01);
}

TEST(Schedule, WarmupStartsFromTheUnscaledBase) {
  const LearningRate rate = linear_scaling({.base = 0.02, .base_batch = 64}).warmup(100).bind(256);
  EXPECT_DOUBLE_EQ(rate(0), 0.02);
  EXPECT_DOUBLE_EQ(rate(50), 0.05);
  EXPECT_DOUBLE_EQ(rate(100), 0.08);
  EXPECT_DOUBLE_EQ(rate(1'000'000), 0.08);
}

TEST(Schedule, WarmupNeverStartsAboveAScaledDownRate) {
  const LearningRate rate = linear_scaling({.base = 0.02, .base_batch = 64}).warmup(100).bind(32);
  for (const std::int64_t step : {0, 50, 100}) EXPECT_DOUBLE_EQ(rate(step), 0.01);
}

TEST(Schedule, WarmupOfAConstantRateStartsFromZero) {
  const LearningRate rate = constant(0.3).warmup(3).bind(64);
  EXPECT_DOUBLE_EQ(rate(0), 0);
  EXPECT_DOUBLE_EQ(rate(1), 0.1);
  EXPECT_DOUBLE_EQ(rate(3), 0.3);
}

TEST(Schedule, PartsMayBeNamedInAnyOrderAndWarmupMayBeLeftOut) {
  const auto base = linear_scaling({.base = 0.02, .base_batch = 64});
  const LearningRate a = base.warmup(10).cosine(40).bind(128);
  const LearningRate b = base.cosine(40).warmup(10).bind(128);
  const LearningRate none = base.cosine(40).warmup(0).bind(128);
  for (std::int64_t step = 0; step < 50; ++step) {
    EXPECT_EQ(a(step), b(step));
    EXPECT_EQ(none(step), base.cosine(40).bind(128)(step));
  }
}

TEST(Schedule, DescribesTheRateAndItsReasons) {
  const auto scaled = linear_scaling({.base = 0.02, .base_batch = 64});
  EXPECT_EQ(scaled.warmup(100).cosine(2345).bind(128).describe(),
            "0.04 = 0.02 × 128/64, warm-up over 100 steps from 0.02, then cosine to 0 at step 2345");
  EXPECT_EQ(scaled.warmup(100).bind(64).describe(),
            "0.02 = 0.02 × 64/64, held for 100 steps as there is nothing to warm up to, then constant");
  EXPECT_EQ(constant(0.1).bind(64).describe(), "0.1, constant");
  EXPECT_EQ(constant(0.1).cosine(20, {.to = 0.01}).bind(64).describe(), "0.1, cosine to 0.01 at step 20");
  EXPECT_EQ(linear_scaling({.base = 0.1, .base_batch = 1}).bind(3).describe(), "0.3 = 0.1 × 3/1, constant");
}

TEST(Schedule, RefusesWhatCannotBe) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const double rate : {0.0, -0.1, nan, std::numeric_limits<double>::infinity()}) {
    EXPECT_ERROR(constant(rate), InvalidArgument, "give a finite number above 0");
    EXPECT_ERROR(linear_scaling({.base = rate, .base_batch = 64}), InvalidArgument, "the base rate is");
  }
  EXPECT_ERROR(linear_scaling({.base = 0.1}), InvalidArgument, "base_batch is 0");
  const Schedule schedule = constant(0.1);
  EXPECT_ERROR(schedule.warmup(-1), InvalidArgument, "warm-up over -1 steps");
  EXPECT_ERROR(schedule.warmup(5, {.from = -1.0}), InvalidArgument, "starts from is -1");
  EXPECT_ERROR(schedule.cosine(0), InvalidArgument, "cosine over 0 steps");
  EXPECT_ERROR(schedule.cosine(10, {.to = nan}), InvalidArgument, "ends at is nan");
  EXPECT_ERROR(schedule.warmup(10).cosine(10), InvalidArgument, "warm-up over 10 steps leaves nothing");
  EXPECT_ERROR(schedule.cosine(10).warmup(11), InvalidArgument, "ends at step 10");
  EXPECT_ERROR(schedule.bind(0), InvalidArgument, "steps of 0 rows");
  EXPECT_ERROR(schedule.bind(64)(-1), InvalidArgument, "no step -1");
}

}  // namespace
}  // namespace brigade::schedule
