#include "choice.h"

#include <fmt/format.h>

#include <algorithm>

#include "brigade/base/error.h"

namespace brigade::cli {

std::size_t chosen(std::string_view what, const std::string& given, const std::vector<std::string>& names) {
  const auto found = std::find(names.begin(), names.end(), given);
  if (found != names.end()) return static_cast<std::size_t>(found - names.begin());
  const std::string nearest = nearest_name(given, names);
  throw InvalidArgument(fmt::format("there is no {} \"{}\"; there are {}{}", what, given, quoted_list(names),
                                    nearest.empty() ? "" : fmt::format(". Is \"{}\" meant?", nearest)));
}

}  // namespace brigade::cli
