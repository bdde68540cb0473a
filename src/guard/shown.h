// Text that came out of a file, as a message may show it.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace brigade::guard {

// In quotes and ASCII, with \uNNNN for everything else, among it what terminals obey.
inline std::string shown(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
}

}  // namespace brigade::guard
