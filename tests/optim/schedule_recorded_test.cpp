// Schedules against the rates that torch.optim.lr_scheduler and optax gave, step by step.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <regex>
#include <stdexcept>
#include <string>
#include <vector>

#include "brigade/optim/schedule.h"
#include "support/case_files.h"

namespace brigade::schedule {
namespace schedule_recorded_test {

using nlohmann::json;

struct Tolerance {
  double relative = 0;    // of a rate
  double of_largest = 0;  // of the largest rate recorded
};

void expect_rates(const Schedule& schedule, const std::vector<double>& expected, Tolerance tolerance) {
  ASSERT_FALSE(expected.empty());
  const LearningRate rate = schedule.bind(1);
  const double absolute = tolerance.of_largest * std::ranges::max(expected);
  for (std::size_t step = 0; step < expected.size(); ++step) {
    EXPECT_NEAR(rate(static_cast<std::int64_t>(step)), expected[step], tolerance.relative * expected[step] + absolute)
        << "step " << step;
  }
}

// torch's goes up again after T_max steps, down after another T_max, and so on: half a cosine after the other.
Schedule torch_cosine(double base, std::int64_t half, double lowest, std::int64_t steps) {
  Schedule schedule = constant(base).cosine(half, {.to = lowest});
  for (std::int64_t at = half; at + 1 < steps; at += half) {
    const bool rises = at / half % 2 == 1;
    schedule = schedule.then(at, constant(rises ? lowest : base).cosine(half, {.to = rises ? base : lowest}));
  }
  return schedule;
}

Schedule torch_one_cycle(const json& args) {
  return constant(args.at("max_lr"))
      .one_cycle(args.at("total_steps"),
                 {.pct_start = args.value("pct_start", 0.3),
                  .div_factor = args.value("div_factor", 25.0),
                  .final_div_factor = args.value("final_div_factor", 1e4),
                  .anneal = args.value("anneal_strategy", "cos") == "cos" ? Anneal::kCosine : Anneal::kLinear,
                  .three_phase = args.value("three_phase", false)});
}

// How many of the recorded steps can be compared.
std::size_t comparable_steps(const json& recorded) {
  const std::string name = recorded.at("schedule");
  const json& args = recorded.at("args");
  const std::size_t all = recorded.at("value_at_step").size();
  // No schedule of ours rises from 0 along a cosine.
  if (name == "CosineAnnealingLR" && args.value("eta_min", 0.0) == 0) {
    return std::min(all, args.at("T_max").get<std::size_t>() + 1);
  }
  // torch extrapolates for one step before it throws.
  if (name.starts_with("OneCycleLR")) return std::min(all, args.at("total_steps").get<std::size_t>());
  return all;
}

Schedule torch_schedule(const json& recorded, std::size_t steps) {
  const std::string name = recorded.at("schedule");
  const json& args = recorded.at("args");
  const double base = recorded.at("base_lr");
  const StepOptions drop{.gamma = args.value("gamma", 0.1)};
  if (name == "StepLR") return constant(base).step(args.at("step_size"), drop);
  if (name == "MultiStepLR") return constant(base).step_at(args.at("milestones"), drop);
  if (name == "ExponentialLR") return constant(base).exponential(args.at("gamma"));
  if (name == "CosineAnnealingLR") {
    return torch_cosine(base, args.at("T_max"), args.value("eta_min", 0.0), static_cast<std::int64_t>(steps));
  }
  if (name == "LinearLR") {
    return constant(base * args.value("start_factor", 1.0 / 3))
        .linear(args.value("total_iters", 5), {.to = base * args.value("end_factor", 1.0)});
  }
  if (name == "PolynomialLR") {
    return constant(base).polynomial(args.value("total_iters", 5), {.power = args.value("power", 1.0)});
  }
  if (name.starts_with("OneCycleLR")) return torch_one_cycle(args);
  throw std::runtime_error("no schedule of ours is compared with " + name);
}

// Both compute in double. torch makes most rates from the one before, so small ones carry the rounding of large ones.
TEST(RecordedSchedules, FollowTorch) {
  const json file = cases::load("torch/schedules.json");
  ASSERT_FALSE(file.at("cases").empty());
  for (const json& recorded : file.at("cases")) {
    SCOPED_TRACE(recorded.at("schedule").get<std::string>() + " " + recorded.at("args").dump());
    std::vector<double> expected = recorded.at("value_at_step");
    expected.resize(comparable_steps(recorded));
    expect_rates(torch_schedule(recorded, expected.size()), expected, {.relative = 1e-12, .of_largest = 1e-15});
  }
}

// The value of `key` in "name(a=1, b=2)".
double argument(const std::string& call, const std::string& key) {
  const std::size_t at = call.find(key + "=");
  if (at == std::string::npos) throw std::out_of_range(key + " is not in " + call);
  return std::stod(call.substr(at + key.size() + 1));
}

// "piecewise(init=0.1, at 6: x0.5, at 15: x0.1)"
Schedule optax_piecewise(const std::string& call) {
  double rate = argument(call, "init");
  Schedule schedule = constant(rate);
  const std::regex drop("at (\\d+): x([-+.e\\d]+)");
  for (auto it = std::sregex_iterator(call.begin(), call.end(), drop); it != std::sregex_iterator(); ++it) {
    rate *= std::stod((*it)[2]);
    schedule = schedule.then(std::stoll((*it)[1]), constant(rate));
  }
  return schedule;
}

Schedule optax_schedule(const std::string& call) {
  const std::string name = call.substr(0, call.find('('));
  const auto number = [&](const char* key) { return argument(call, key); };
  const auto steps = [&](const char* key) { return static_cast<std::int64_t>(argument(call, key)); };
  if (name == "cosine") {
    return constant(number("init")).cosine(steps("decay_steps"), {.to = number("init") * number("alpha")});
  }
  if (name == "warmup_cosine") {
    return constant(number("peak"))
        .warmup(steps("warmup_steps"), {.from = number("init")})
        .cosine(steps("decay_steps"), {.to = number("end")});
  }
  if (name == "linear") {
    const Schedule line = constant(number("init")).linear(steps("steps"), {.to = number("end")});
    return steps("begin") > 0 ? constant(number("init")).then(steps("begin"), line) : line;
  }
  if (name == "piecewise") return optax_piecewise(call);
  if (name == "polynomial") {
    return constant(number("init")).polynomial(steps("steps"), {.power = number("power"), .to = number("end")});
  }
  if (name == "exponential") return constant(number("init")).exponential(number("rate"), {.every = steps("steps")});
  throw std::runtime_error("no schedule of ours is compared with " + call);
}

// optax computes in float32: its cosine loses 1e-7 of the first rate where it nears 0, its power some ulps more.
TEST(RecordedSchedules, FollowOptax) {
  const json file = cases::load("jax/optim.json");
  int checked = 0;
  for (const json& recorded : file.at("cases")) {
    if (!recorded.contains("schedule")) continue;  // an update rule
    const std::string call = recorded.at("schedule");
    SCOPED_TRACE(call);
    expect_rates(optax_schedule(call), recorded.at("value_at_step"), {.relative = 2e-6, .of_largest = 2e-7});
    ++checked;
  }
  EXPECT_GT(checked, 0);
}

}  // namespace schedule_recorded_test
}  // namespace brigade::schedule
