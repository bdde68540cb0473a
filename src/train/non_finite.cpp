#include "non_finite.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <cmath>

#include "brigade/base/error.h"

namespace brigade::training {
namespace {

[[noreturn]] void stop(const std::string& what, const StepPlace& place) {
  throw NonFiniteError(what + ". Nothing was updated", {.site = place.site});
}

}  // namespace

void throw_non_finite(const Seats& seats, const LeafLedger& ledger, const GradientMeasure& measure,
                      const Layout& layout, const StepPlace& place) {
  if (const std::int64_t leaf = ledger.first_non_finite(); leaf >= 0)
    stop(fmt::format("the loss of leaf {} of step {} is not finite", leaf, place.step), place);
  const auto first = measure.first_non_finite();
  if (!first) stop(fmt::format("the norm of the gradient overflows in step {}", place.step), place);
  const Segment& segment = layout.segments()[first->segment];
  for (std::size_t device = 0; device < seats.size(); ++device) {
    for (const LeafSums::Part& part : seats[device].exchange->parts(first->segment)) {
      const double value =
          part.sum.as_strided({part.sum.numel()}, {1})[static_cast<std::int64_t>(first->element)].item<double>();
      if (std::isfinite(value)) continue;
      throw NonFiniteError(
          fmt::format(
              "the gradient of {} is {} at element {} ({} of step {}). Nothing was updated. Look for a "
              "division by zero or a logarithm of it, lower the learning rate, or skip such steps with .non_finite = "
              "NonFinite::kSkip",
              segment.name, value, first->element,
              place.in_parts ? "in the parts" : fmt::format("leaves {} to {}", part.begin, part.begin + part.count - 1),
              place.step),
          {.device = static_cast<int>(device), .site = place.site});
    }
  }
  stop(fmt::format("the gradient of {} overflows at element {} when it is summed over the leaves of step {}",
                   segment.name, first->element, place.step),
       place);
}

}  // namespace brigade::training
