// How every error about a schedule is built.
#pragma once

#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <string_view>
#include <utility>

#include "brigade/base/error.h"

namespace brigade::schedule {

template <class... Arguments>
[[noreturn]] void refuse(fmt::format_string<Arguments...> text, Arguments&&... arguments) {
  throw InvalidArgument("Schedule: " + fmt::format(text, std::forward<Arguments>(arguments)...));
}

inline void check_positive(std::string_view what, double value) {
  if (!std::isfinite(value) || value <= 0) refuse("{} is {}: give a finite number above 0.", what, value);
}

inline void check_non_negative(std::string_view what, double value) {
  if (!std::isfinite(value) || value < 0) refuse("{} is {}: give a finite number, 0 or more.", what, value);
}

// Of numbers of steps and places of steps; up to here a double holds each of them.
constexpr std::int64_t kMaxSteps = std::int64_t{1} << 53;

inline void check_steps(std::string_view what, std::int64_t steps) {
  if (steps < 1) refuse("{} is {}: give 1 or more.", what, steps);
  if (steps > kMaxSteps) refuse("{} is {}: steps are counted up to {}.", what, steps, kMaxSteps);
}

}  // namespace brigade::schedule
