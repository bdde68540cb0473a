#include "rate.h"

#include <fmt/format.h>

#include <algorithm>

#include "brigade/base/error.h"
#include "choice.h"

namespace brigade::cli {
namespace {

constexpr std::int64_t kWarmupSteps = 100;

enum class Curve { kConstant, kStep, kCosine, kLinear, kPolynomial, kExponential, kOneCycle };
enum class Scaling { kNone, kLinear, kSqrt };

schedule::Schedule peak(const RateOptions& options, const Optimizer& optimizer) {
  const double rate = options.rate.value_or(optimizer.rate);
  const std::string& name = options.scaling.empty() ? optimizer.scaling : options.scaling;
  switch (static_cast<Scaling>(chosen("--scale-lr rule", name, scaling_names()))) {
    case Scaling::kNone:
      return schedule::constant(rate);
    case Scaling::kLinear:
      return schedule::linear_scaling({.base = rate, .base_batch = options.base_batch});
    case Scaling::kSqrt:
      break;
  }
  return schedule::sqrt_scaling({.base = rate, .base_batch = options.base_batch});
}

void require_use(bool given, const char* option, bool used, const std::string& schedule) {
  if (!given || used) return;
  throw InvalidArgument(fmt::format("{} has no meaning with --schedule {}", option, schedule));
}

void check(const RateOptions& options, Curve curve) {
  const bool drops = curve == Curve::kStep || curve == Curve::kExponential;
  require_use(options.gamma.has_value(), "--schedule-gamma", drops, options.schedule);
  require_use(options.every.has_value(), "--schedule-every", drops, options.schedule);
  require_use(options.power.has_value(), "--schedule-power", curve == Curve::kPolynomial, options.schedule);
  const bool ends = curve == Curve::kCosine || curve == Curve::kLinear || curve == Curve::kPolynomial;
  require_use(options.to.has_value(), "--schedule-to", ends, options.schedule);
}

}  // namespace

std::vector<std::string> schedule_names() {
  return {"constant", "step", "cosine", "linear", "polynomial", "exponential", "one-cycle"};  // in the order of Curve
}

std::vector<std::string> scaling_names() { return {"none", "linear", "sqrt"}; }

schedule::Schedule schedule_for(const RateOptions& options, const Optimizer& optimizer, std::int64_t steps) {
  const auto curve = static_cast<Curve>(chosen("schedule", options.schedule, schedule_names()));
  check(options, curve);
  // One-cycle rises by itself.
  const std::int64_t usual_warmup = curve == Curve::kOneCycle ? 0 : std::min(kWarmupSteps, steps / 2);
  const std::int64_t warmup = options.warmup.value_or(usual_warmup);
  if (warmup >= steps && warmup > 0) {
    throw InvalidArgument(
        fmt::format("--warmup {}: the run has {} steps, and one at least comes after", warmup, steps));
  }
  schedule::Schedule rate = peak(options, optimizer);
  if (warmup > 0) {
    rate = optimizer.warms_up_from_0 ? rate.warmup(warmup, {.from = 0}) : rate.warmup(warmup);
  }
  const std::int64_t after = steps - warmup;
  const double to = options.to.value_or(0);
  switch (curve) {
    case Curve::kConstant:
      return rate;
    case Curve::kStep:
      return rate.step(options.every.value_or((after + 2) / 3), {.gamma = options.gamma.value_or(0.1)});
    case Curve::kCosine:
      return rate.cosine(steps, {.to = to});
    case Curve::kLinear:
      return rate.linear(steps, {.to = to});
    case Curve::kPolynomial:
      return rate.polynomial(steps, {.power = options.power.value_or(2), .to = to});
    case Curve::kExponential:
      return rate.exponential(options.gamma.value_or(0.01), {.every = options.every.value_or(after)});
    case Curve::kOneCycle:
      break;
  }
  return rate.one_cycle(steps);
}

}  // namespace brigade::cli
