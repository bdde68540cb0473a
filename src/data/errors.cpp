#include "data/errors.h"

#include <algorithm>
#include <cstddef>
#include <iterator>

namespace brigade::data {
namespace {

constexpr std::size_t kLongest = 80;

std::size_t length_by_first_byte(unsigned char byte) {
  if (byte < 0x80) return 1;
  if (byte >= 0xC2 && byte <= 0xDF) return 2;
  if (byte >= 0xE0 && byte <= 0xEF) return 3;
  if (byte >= 0xF0 && byte <= 0xF4) return 4;
  return 0;
}

// Bytes of the character at the front of `text`, as UTF-8 has it; 0 when it is none or is a control character.
std::size_t printable_length(std::string_view text) {
  const auto at = [text](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const std::size_t length = length_by_first_byte(at(0));
  if (length == 0 || length > text.size()) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((at(i) & 0xC0) != 0x80) return 0;
  }
  if (length == 1) return at(0) >= 0x20 && at(0) != 0x7F ? 1 : 0;
  const unsigned first_two = at(0) * 0x100u + at(1);
  const bool control = at(0) == 0xC2 && at(1) < 0xA0;
  const bool overlong = (at(0) == 0xE0 && at(1) < 0xA0) || (at(0) == 0xF0 && at(1) < 0x90);
  const bool surrogate = first_two >= 0xEDA0 && first_two <= 0xEDBF;
  const bool too_large = first_two >= 0xF490;
  return control || overlong || surrogate || (length == 4 && too_large) ? 0 : length;
}

}  // namespace

std::string shown(std::string_view text) {
  std::string result = "\"";
  std::size_t at = 0;
  while (at < text.size() && at < kLongest) {
    const std::size_t length = printable_length(text.substr(at));
    if (length == 0) {
      fmt::format_to(std::back_inserter(result), "\\x{:02x}", static_cast<unsigned char>(text[at]));
    } else {
      result += text.substr(at, length);
    }
    at += std::max<std::size_t>(length, 1);
  }
  return result + (at < text.size() ? "\"..." : "\"");
}

}  // namespace brigade::data
