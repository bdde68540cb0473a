// How every error about a file or a folder is built: its name, then what was found and what to do.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>

#include "brigade/base/error.h"

namespace brigade::data {

[[noreturn]] inline void refuse(std::string_view name, std::string_view problem) {
  throw DataError(fmt::format("{}: {}", name, problem));
}

// `text`, which came out of a file, as a message may show it: in quotes, its beginning only when it is long, with \xNN
// for what terminals obey and for what is no UTF-8.
std::string shown(std::string_view text);

}  // namespace brigade::data
