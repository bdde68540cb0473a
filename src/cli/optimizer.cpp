#include "optimizer.h"

#include <fmt/format.h>

#include <algorithm>

#include "brigade/base/error.h"
#include "brigade/optim/adagrad.h"
#include "brigade/optim/adam.h"
#include "brigade/optim/lamb.h"
#include "brigade/optim/lars.h"
#include "brigade/optim/rmsprop.h"
#include "brigade/optim/sgd.h"
#include "choice.h"

namespace brigade::cli {
namespace {

struct Numbers {
  double momentum;
  double weight_decay;
};

struct Kind {
  std::string name;
  optim::Rule (*make)(Numbers numbers);
  double rate;
  std::string scaling;
  double momentum = -1;  // when nobody says otherwise; below 0: the rule has none
  bool adaptive = true;
  bool layerwise = false;
};

const std::vector<Kind>& kinds() {
  static const std::vector<Kind> all = {
      {.name = "sgd",
       .make = [](Numbers n) { return optim::sgd({.momentum = n.momentum, .weight_decay = n.weight_decay}); },
       .rate = 0.02,
       .scaling = "linear",
       .momentum = 0.9,
       .adaptive = false},
      {.name = "adam",
       .make = [](Numbers n) { return optim::adam({.weight_decay = n.weight_decay}); },
       .rate = 1e-3,
       .scaling = "sqrt"},
      {.name = "adamw",
       .make = [](Numbers n) { return optim::adamw({.weight_decay = n.weight_decay}); },
       .rate = 1e-3,
       .scaling = "sqrt"},
      {.name = "adagrad",
       .make = [](Numbers n) { return optim::adagrad({.weight_decay = n.weight_decay}); },
       .rate = 1e-2,
       .scaling = "sqrt"},
      {.name = "rmsprop",
       .make = [](Numbers n) { return optim::rmsprop({.weight_decay = n.weight_decay, .momentum = n.momentum}); },
       .rate = 1e-3,
       .scaling = "sqrt",
       .momentum = 0},
      {.name = "lars",
       .make = [](Numbers n) { return optim::lars({.momentum = n.momentum, .weight_decay = n.weight_decay}); },
       .rate = 2,
       .scaling = "linear",
       .momentum = 0.9,
       .adaptive = false,
       .layerwise = true},
      {.name = "lamb",
       .make = [](Numbers n) { return optim::lamb({.weight_decay = n.weight_decay}); },
       .rate = 2e-3,
       .scaling = "sqrt",
       .layerwise = true},
  };
  return all;
}

// torch.optim.AdamW's; the others have none.
constexpr double kAdamWDecay = 0.01;

optim::Clip clip_of(const OptimizerOptions& options, const Model& model) {
  if (options.clip && options.clip_value) {
    throw InvalidArgument("--clip bounds the norm of all gradients, --clip-value each of their elements: give one");
  }
  if (options.clip_value) return optim::clip_value(*options.clip_value);
  const double norm = options.clip.value_or(model.clip_norm);
  return norm > 0 ? optim::clip_norm(norm) : optim::Clip();
}

}  // namespace

std::vector<std::string> optimizer_names() {
  std::vector<std::string> names;
  for (const Kind& kind : kinds()) names.push_back(kind.name);
  return names;
}

Optimizer optimizer_for(const OptimizerOptions& options, const Model& model) {
  const std::string name = options.name.empty() ? model.optimizer : options.name;
  const Kind& kind = kinds()[chosen("optimizer", name, optimizer_names())];
  if (options.momentum && kind.momentum < 0) {
    throw InvalidArgument(
        fmt::format("--momentum has no meaning for {}, which keeps averages of its own: sgd, lars and "
                    "rmsprop take one",
                    name));
  }
  const double decay = options.weight_decay.value_or(model.weight_decay > 0 ? model.weight_decay
                                                     : name == "adamw"      ? kAdamWDecay
                                                                            : 0);
  const double momentum = options.momentum.value_or(std::max(0.0, kind.momentum));
  return {.rule = kind.make({.momentum = momentum, .weight_decay = decay}),
          .groups = kind.layerwise ? std::vector<optim::Group>{optim::exempt_biases_and_norms()}
                                   : std::vector<optim::Group>{},
          .clip = clip_of(options, model),
          .momentum = momentum,
          .rate = kind.rate,
          .scaling = kind.scaling,
          .warms_up_from_0 = kind.adaptive};
}

}  // namespace brigade::cli
