#include "brigade/optim/groups.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "brigade/base/error.h"
#include "optim/glob.h"

namespace brigade::optim {
namespace {

// `number` counts groups from 1, for people.
void check_setting(std::size_t number, std::string_view name, const std::optional<double>& value) {
  if (!value || (std::isfinite(*value) && *value >= 0)) return;
  throw InvalidArgument(
      fmt::format("parameter group {}: {} is {}: give a finite number, 0 or more.", number, name, *value));
}

void check_group(std::size_t number, const Group& group) {
  if (group.names.empty() && !group.where) {
    throw InvalidArgument(
        fmt::format("parameter group {} chooses no parameters: give it names or a predicate. The name "
                    "\"*\" takes all.",
                    number));
  }
  check_setting(number, "learning_rate", group.learning_rate);
  check_setting(number, "weight_decay", group.weight_decay);
}

void check_pattern(std::size_t number, const std::string& pattern, std::span<const NamedShape> parameters) {
  const NamedShape* nearest = nullptr;
  std::size_t fewest = 0;
  for (const NamedShape& parameter : parameters) {
    const std::size_t edits = edits_to_match(pattern, parameter.name);
    if (edits == 0) return;
    if (nearest != nullptr && edits >= fewest) continue;
    nearest = &parameter;
    fewest = edits;
  }
  throw InvalidArgument(fmt::format(
      "parameter group {}: no parameter's name matches \"{}\"{}", number, pattern,
      nearest == nullptr ? "; there are no parameters." : fmt::format("; the nearest is \"{}\".", nearest->name)));
}

bool takes(const Group& group, const NamedShape& parameter) {
  const auto matches = [&](const std::string& pattern) { return edits_to_match(pattern, parameter.name) == 0; };
  if (!group.names.empty() && std::none_of(group.names.begin(), group.names.end(), matches)) return false;
  return !group.where || group.where(parameter.name, parameter.shape);
}

}  // namespace

Group exempt_biases_and_norms() {
  return {.where = [](std::string_view, std::span<const std::int64_t> shape) { return shape.size() < 2; },
          .weight_decay = 0,
          .trust_ratio = TrustRatio::kOff};
}

std::vector<ParameterSettings> settings_of(std::span<const Group> groups, std::span<const NamedShape> parameters) {
  std::vector<ParameterSettings> settings(parameters.size());
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const Group& group = groups[g];
    check_group(g + 1, group);
    for (const std::string& pattern : group.names) check_pattern(g + 1, pattern, parameters);
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      if (!takes(group, parameters[i])) continue;
      if (group.learning_rate) settings[i].learning_rate = *group.learning_rate;
      if (group.weight_decay) settings[i].weight_decay = group.weight_decay;
      if (group.trust_ratio) settings[i].trust_ratio = *group.trust_ratio;
    }
  }
  return settings;
}

}  // namespace brigade::optim
