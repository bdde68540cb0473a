// state.json: what a run needs besides tensors, as one JSON object.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace brigade::guard {

// What one may take. A value of JSON takes up to some 40 times the memory of its text.
inline constexpr std::size_t kMaxStateBytes = std::size_t{1} << 20;
inline constexpr int kMaxStateDepth = 32;

// The text of `state`, which is an object. Throws InvalidArgument, with the value's path, for what would not be read back as it
// is: numbers that are not finite, text that is no UTF-8, more levels or bytes than allowed.
std::string to_text(const nlohmann::json& state);

// Throws DataError that begins with `name` for anything else than one object within those limits, and for keys that occur
// twice.
nlohmann::json parse_state(std::string_view name, std::string_view text);

}  // namespace brigade::guard
