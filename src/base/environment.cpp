#include "brigade/base/environment.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "brigade/base/error.h"

namespace brigade {
namespace {

// An empty value counts as unset, as shells make it easy to write `VARIABLE= command`.
std::optional<std::string_view> value_of(const Environment::Lookup& lookup, const char* name) {
  const char* text = lookup(name);
  if (text == nullptr || *text == '\0') return std::nullopt;
  return std::string_view(text);
}

[[noreturn]] void refuse(const char* name, std::string_view text, std::string_view takes) {
  throw EnvironmentError(
      fmt::format("{}=\"{}\" cannot be used: it takes {}. Correct it or unset it.", name, text, takes));
}

template <class Number>
std::optional<Number> number(const Environment::Lookup& lookup, const char* name, Number low, Number high,
                             std::string_view takes) {
  const auto text = value_of(lookup, name);
  if (!text) return std::nullopt;
  Number value{};
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  // Written so that a NaN is refused as well.
  if (error != std::errc{} || end != text->data() + text->size() || !(value >= low && value <= high)) {
    refuse(name, *text, takes);
  }
  return value;
}

}  // namespace

Environment Environment::read(const Lookup& lookup) {
  Environment result;
  constexpr std::string_view kCount = "a whole number from 1 to 1024";
  result.cpu_devices = number<int>(lookup, "BRIGADE_CPU_DEVICES", 1, 1024, kCount);
  result.intra_op_threads = number<int>(lookup, "BRIGADE_INTRA_OP_THREADS", 1, 1024, kCount);
  result.pin_threads = number<int>(lookup, "BRIGADE_PIN_THREADS", 0, 1, "0 or 1").value_or(0) == 1;
  if (const auto seconds = number<double>(lookup, "BRIGADE_DEADLINE", 0.001, 1e9, "seconds, from 0.001 to 1e9")) {
    result.deadline = std::chrono::milliseconds(static_cast<std::int64_t>(*seconds * 1000.0));
  }
  if (const auto level = value_of(lookup, "BRIGADE_LOG")) {
    static const std::vector<std::string> levels = {"trace", "debug", "info", "warn", "error", "off"};
    result.log_level = *level;
    if (std::find(levels.begin(), levels.end(), result.log_level) == levels.end()) {
      refuse("BRIGADE_LOG", *level, "one of " + quoted_list(levels));
    }
  }
  return result;
}

const Environment& environment() {
  static const Environment instance = Environment::read([](const char* name) { return std::getenv(name); });
  return instance;
}

}  // namespace brigade
