#include "brigade/optim/clip.h"

#include <fmt/format.h>

#include <cmath>
#include <string_view>

#include "brigade/base/error.h"

namespace brigade::optim {
namespace {

void check_limit(std::string_view function, double limit) {
  if (std::isfinite(limit) && limit > 0) return;
  throw InvalidArgument(
      fmt::format("{}: the limit is {}: give a finite number above 0, or Clip() to clip nothing.", function, limit));
}

}  // namespace

double Clip::factor(double norm) const {
  if (!needs_norm()) return 1;
  if (!std::isfinite(norm)) return std::numeric_limits<double>::quiet_NaN();
  const auto single = static_cast<float>(norm);
  if (!std::isfinite(single)) return max_norm_ / norm;
  return std::fmin(1, 1 / (single + 1e-6F) * static_cast<float>(max_norm_));
}

std::string Clip::describe() const {
  if (needs_norm()) return fmt::format("to a global norm of {}", max_norm_);
  if (max_value_ != kUnlimited) return fmt::format("to values of {}", max_value_);
  return "off";
}

Clip clip_norm(double max_norm) {
  check_limit("clip_norm", max_norm);
  Clip clip;
  clip.max_norm_ = max_norm;
  return clip;
}

Clip clip_value(double limit) {
  check_limit("clip_value", limit);
  Clip clip;
  clip.max_value_ = limit;
  return clip;
}

}  // namespace brigade::optim
