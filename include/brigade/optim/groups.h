// Parameter groups: parameters with a learning rate, weight decay or trust ratio of their own.
//
//   const std::vector<optim::Group> groups = {
//       optim::exempt_biases_and_norms(),
//       {.names = {"backbone.*"}, .learning_rate = 0.1},                  // a tenth of the schedule's rate
//       {.where = [](std::string_view, std::span<const std::int64_t> shape) { return shape.size() == 4; },
//        .weight_decay = 1e-3},
//   };
//   const auto settings = optim::settings_of(groups, parameters);           // one for each parameter
//   const optim::Rule own = settings[i].weight_decay ? rule.with_weight_decay(*settings[i].weight_decay) : rule;
//
// In a pattern * stands for any characters, dots among them, and ? for one; everything else, brackets as well, for itself.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace brigade::optim {

enum class TrustRatio { kOn, kOff };  // of layer-wise rules

// Whom a group takes, and what holds for them. What is not set stays as earlier groups, or the rule, have it.
struct Group {
  // Parameters whose names match any of these patterns, and for which `where` is true. One of the two may be left out.
  std::vector<std::string> names = {};
  std::function<bool(std::string_view name, std::span<const std::int64_t> shape)> where = {};

  std::optional<double> learning_rate = {};  // the schedule's is multiplied by it
  std::optional<double> weight_decay = {};   // instead of the rule's
  std::optional<TrustRatio> trust_ratio = {};
};

// Parameters of fewer than two dimensions (biases, scales and shifts of normalisations) get no weight decay and no trust
// ratio, as is usual with LARS and LAMB.
Group exempt_biases_and_norms();

struct NamedShape {
  std::string_view name = {};
  std::span<const std::int64_t> shape = {};
};

// What holds for one parameter.
struct ParameterSettings {
  double learning_rate = 1;                 // multiplies the schedule's
  std::optional<double> weight_decay = {};  // none: the rule's
  TrustRatio trust_ratio = TrustRatio::kOn;
};

// The settings of each of `parameters`; of groups that set the same thing for one parameter the later wins. Throws
// InvalidArgument for a pattern that no parameter matches, with the nearest name, for a group that chooses nothing, and
// for rates and decays that are negative or not finite.
std::vector<ParameterSettings> settings_of(std::span<const Group> groups, std::span<const NamedShape> parameters);

}  // namespace brigade::optim
