#include "guard/state.h"

#include <fmt/format.h>

#include <cmath>
#include <set>
#include <vector>

#include "brigade/base/error.h"

namespace brigade::guard {
namespace {

using nlohmann::json;

constexpr std::string_view kAdvice = "The checkpoint is damaged: use another one.";

void require_writable(const json& value, const std::string& path, int depth) {
  const auto refuse = [&](std::string_view why) {
    throw InvalidArgument(fmt::format("checkpoint: state{} cannot be written: {}", path, why));
  };
  if (depth > kMaxStateDepth) refuse(fmt::format("it lies more than {} levels deep", kMaxStateDepth));
  if (value.is_number_float() && !std::isfinite(value.get<double>()))
    refuse("it is not finite, and JSON has no such number. Leave it out, or write it as a tensor");
  if (value.is_binary()) refuse("it is bytes, which JSON has not. Write them as a tensor");
  if (value.is_discarded()) refuse("it was discarded by its parser");
  if (value.is_array()) {
    for (std::size_t i = 0; i < value.size(); ++i)
      require_writable(value[i], fmt::format("{}[{}]", path, i), depth + 1);
  }
  if (value.is_object()) {
    for (const auto& [key, one] : value.items()) require_writable(one, fmt::format("{}.{}", path, key), depth + 1);
  }
}

}  // namespace

std::string to_text(const json& state) {
  if (!state.is_object()) throw InvalidArgument("checkpoint: the state is no JSON object: give {name: value, ...}");
  require_writable(state, {}, 0);
  std::string text;
  try {
    text = state.dump(2) + "\n";
  } catch (const json::type_error&) {
    throw InvalidArgument("checkpoint: a text of the state is no UTF-8. Write bytes as a tensor");
  }
  if (text.size() > kMaxStateBytes) {
    throw InvalidArgument(
        fmt::format("checkpoint: the state takes {} bytes, where {} are read. Write what is large as a tensor",
                    text.size(), kMaxStateBytes));
  }
  return text;
}

json parse_state(std::string_view name, std::string_view text) {
  const auto refuse = [&](std::string_view what) { throw DataError(fmt::format("{}: {}. {}", name, what, kAdvice)); };
  if (text.size() > kMaxStateBytes)
    refuse(fmt::format("has {} bytes, above the limit of {}", text.size(), kMaxStateBytes));
  std::vector<std::set<std::string>> keys;  // seen, of the objects that are open
  const auto watch = [&](int depth, json::parse_event_t event, json& value) {
    if (depth > kMaxStateDepth) refuse(fmt::format("has more than {} levels", kMaxStateDepth));
    if (event == json::parse_event_t::object_start) keys.emplace_back();
    if (event == json::parse_event_t::object_end) keys.pop_back();
    if (event == json::parse_event_t::key && !keys.back().insert(value.get<std::string>()).second)
      refuse("has a key twice in one object");
    return true;
  };
  json state;
  try {
    state = json::parse(text, watch);
  } catch (const json::exception&) {  // its text may hold what a terminal obeys
    refuse("is no JSON in UTF-8");
  }
  if (!state.is_object()) refuse("is no JSON object");
  return state;
}

}  // namespace brigade::guard
