#include "brigade/base/error.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace brigade {
namespace {

std::string with_context(std::string_view message, const ErrorContext& context) {
  std::string parts;
  const auto add = [&parts](const std::string& part) { parts += (parts.empty() ? "" : ", ") + part; };
  if (!context.argument.empty()) add("argument " + context.argument);
  if (!context.axis.empty()) add("axis \"" + context.axis + "\"");
  if (context.device) add(fmt::format("device {}", *context.device));
  if (context.site) add("at " + to_string(*context.site));
  return parts.empty() ? std::string(message) : fmt::format("{} ({})", message, parts);
}

// Insertions, deletions, substitutions and swaps of neighbours that turn one word into the other (the optimal string
// alignment distance).
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<std::size_t>> table(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) table[i][0] = i;
  std::iota(table[0].begin(), table[0].end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t substituted = table[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      table[i][j] = std::min({table[i - 1][j] + 1, table[i][j - 1] + 1, substituted});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        table[i][j] = std::min(table[i][j], table[i - 2][j - 2] + 1);
      }
    }
  }
  return table[a.size()][b.size()];
}

}  // namespace

Error::Error(std::string_view message, ErrorContext context)
    : std::runtime_error(with_context(message, context)), context_(std::move(context)), message_size_(message.size()) {}

std::string quoted_list(const std::vector<std::string>& names) {
  std::string list;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i > 0) list += i + 1 == names.size() ? " and " : ", ";
    list += '"' + names[i] + '"';
  }
  return list;
}

std::string nearest_name(std::string_view name, const std::vector<std::string>& candidates) {
  std::string best;
  // Farther than half of the word is another word, not a slip of the finger.
  std::size_t best_distance = std::max<std::size_t>(1, name.size() / 2) + 1;
  for (const std::string& candidate : candidates) {
    const std::size_t distance = edit_distance(name, candidate);
    if (distance < best_distance) {
      best_distance = distance;
      best = candidate;
    }
  }
  return best;
}

std::string to_string(const std::source_location& site) {
  std::string_view file = site.file_name();
  if (const auto slash = file.rfind('/'); slash != std::string_view::npos) file.remove_prefix(slash + 1);
  return fmt::format("{}:{}", file, site.line());
}

}  // namespace brigade
