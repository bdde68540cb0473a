// Options that are one of a few names.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace brigade::cli {

// The place of `given` among `names`. Throws InvalidArgument, `there is no model "mpl"; there are ...`, with the nearest.
std::size_t chosen(std::string_view what, const std::string& given, const std::vector<std::string>& names);

}  // namespace brigade::cli
