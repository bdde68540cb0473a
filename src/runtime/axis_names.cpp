#include "brigade/runtime/axis_names.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace brigade {

std::string AxisNames::text() const { return fmt::format("{}", fmt::join(names_, ", ")); }

}  // namespace brigade
