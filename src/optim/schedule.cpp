#include "brigade/optim/schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string_view>

#include "brigade/base/error.h"

namespace brigade::schedule {
namespace {

template <class... Arguments>
[[noreturn]] void refuse(fmt::format_string<Arguments...> text, Arguments&&... arguments) {
  throw InvalidArgument("Schedule: " + fmt::format(text, std::forward<Arguments>(arguments)...));
}

void check_positive(std::string_view what, double rate) {
  if (!std::isfinite(rate) || rate <= 0) refuse("{} is {}: give a finite number above 0.", what, rate);
}

void check_non_negative(std::string_view what, double rate) {
  if (!std::isfinite(rate) || rate < 0) refuse("{} is {}: give a finite number, 0 or more.", what, rate);
}

double scaled(const detail::Parts& parts, std::int64_t effective_batch) {
  if (!parts.base_batch) return parts.base;
  return parts.base * static_cast<double>(effective_batch) / static_cast<double>(*parts.base_batch);
}

double start_of_warmup(const detail::Parts& parts, double peak) {
  if (parts.warmup.steps == 0) return peak;
  return parts.warmup.from.value_or(parts.base_batch ? std::min(parts.base, peak) : 0);
}

}  // namespace

LearningRate::LearningRate(const detail::Parts& parts, std::int64_t effective_batch)
    : parts_(parts),
      effective_batch_(effective_batch),
      peak_(scaled(parts, effective_batch)),
      warmup_from_(start_of_warmup(parts, peak_)) {}

double LearningRate::operator()(std::int64_t step) const {
  if (step < 0) refuse("there is no step {}; steps count from 0.", step);
  const std::int64_t warmup_steps = parts_.warmup.steps;
  if (step < warmup_steps) {
    const double fraction = static_cast<double>(step) / static_cast<double>(warmup_steps);
    return warmup_from_ + (peak_ - warmup_from_) * fraction;
  }
  if (!parts_.cosine) return peak_;
  const auto [total_steps, to] = *parts_.cosine;
  if (step >= total_steps) return to;
  const double fraction = static_cast<double>(step - warmup_steps) / static_cast<double>(total_steps - warmup_steps);
  return to + (peak_ - to) * 0.5 * (1 + std::cos(std::numbers::pi * fraction));
}

std::string LearningRate::describe() const {
  std::string text = fmt::format("{:.6g}", peak_);
  if (parts_.base_batch) text += fmt::format(" = {:.6g} × {}/{}", parts_.base, effective_batch_, *parts_.base_batch);
  text += ", ";
  if (parts_.warmup.steps > 0) {
    text += warmup_from_ != peak_
                ? fmt::format("warm-up over {} steps from {:.6g}, then ", parts_.warmup.steps, warmup_from_)
                : fmt::format("held for {} steps as there is nothing to warm up to, then ", parts_.warmup.steps);
  }
  if (!parts_.cosine) return text + "constant";
  return text + fmt::format("cosine to {:.6g} at step {}", parts_.cosine->to, parts_.cosine->total_steps);
}

Schedule::Schedule(detail::Parts parts) : parts_(parts) {
  if (parts.cosine && parts.warmup.steps >= parts.cosine->total_steps) {
    refuse(
        "a warm-up over {} steps leaves nothing of a cosine that ends at step {}. Warm up for fewer steps, or train "
        "for "
        "more.",
        parts.warmup.steps, parts.cosine->total_steps);
  }
}

Schedule Schedule::warmup(std::int64_t steps, WarmupOptions options) const {
  if (steps < 0) refuse("a warm-up over {} steps cannot be: give 0 or more.", steps);
  if (options.from) check_non_negative("the rate that warm-up starts from", *options.from);
  detail::Parts parts = parts_;
  parts.warmup = {.steps = steps, .from = options.from};
  return Schedule(parts);
}

Schedule Schedule::cosine(std::int64_t total_steps, CosineOptions options) const {
  if (total_steps < 1) refuse("a cosine over {} steps cannot be: give 1 or more.", total_steps);
  check_non_negative("the rate that the cosine ends at", options.to);
  detail::Parts parts = parts_;
  parts.cosine = {.total_steps = total_steps, .to = options.to};
  return Schedule(parts);
}

LearningRate Schedule::bind(std::int64_t effective_batch) const {
  if (effective_batch < 1) refuse("steps of {} rows cannot be: give 1 or more.", effective_batch);
  return LearningRate(parts_, effective_batch);
}

Schedule constant(double rate) {
  check_positive("the rate", rate);
  return Schedule({.base = rate});
}

Schedule linear_scaling(LinearScaling scaling) {
  check_positive("the base rate", scaling.base);
  if (scaling.base_batch < 1) {
    refuse("base_batch is {}: give the rows of one step that the base rate was found for, 1 or more.",
           scaling.base_batch);
  }
  return Schedule({.base = scaling.base, .base_batch = scaling.base_batch});
}

}  // namespace brigade::schedule
