// How every error about a file or a folder is built: its name, then what was found and what to do.
#pragma once

#include <fmt/format.h>

#include <string_view>

#include "brigade/base/error.h"

namespace brigade::data {

[[noreturn]] inline void refuse(std::string_view name, std::string_view problem) {
  throw DataError(fmt::format("{}: {}", name, problem));
}

}  // namespace brigade::data
