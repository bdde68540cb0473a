// Names against patterns with * (any characters) and ? (one character).
#pragma once

#include <cstddef>
#include <string_view>

namespace brigade::optim {

// The fewest characters to insert, delete or replace in `name` for it to match `pattern`; 0 when it does.
std::size_t edits_to_match(std::string_view pattern, std::string_view name);

}  // namespace brigade::optim
