#include "optim/options.h"

#include <fmt/format.h>

#include <cmath>

#include "brigade/base/error.h"

namespace brigade::optim {

void check_non_negative(std::string_view rule, std::string_view option, double value) {
  if (std::isfinite(value) && value >= 0) return;
  throw InvalidArgument(fmt::format("{}: {} is {}: give a finite number, 0 or more.", rule, option, value));
}

void check_fraction(std::string_view rule, std::string_view option, double value) {
  if (value >= 0 && value < 1) return;
  throw InvalidArgument(fmt::format("{}: {} is {}: give a number from 0 to below 1.", rule, option, value));
}

Description& Description::option(std::string_view name, double value, double by_default) {
  if (value != by_default) text_ += fmt::format(", {} {}", name, value);
  return *this;
}

Description& Description::flag(std::string_view name, bool is_set) {
  if (is_set) text_ += fmt::format(", {}", name);
  return *this;
}

}  // namespace brigade::optim
