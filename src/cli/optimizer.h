// The update rule that the command line asks for, and what is usual for it.
#pragma once

#include <string>
#include <vector>

#include "brigade/optim/clip.h"
#include "brigade/optim/groups.h"
#include "brigade/optim/rule.h"
#include "models/models.h"
#include "train_options.h"

namespace brigade::cli {

struct Optimizer {
  optim::Rule rule;
  std::vector<optim::Group> groups;
  optim::Clip clip;
  double momentum;       // 0 for rules without one
  double rate;           // for steps of 64 rows, when nobody says otherwise
  std::string scaling;   // of the rate with the rows of a step: "linear", "sqrt"
  bool warms_up_from_0;  // rules that divide by what they have hardly seen yet
};

std::vector<std::string> optimizer_names();

// Throws InvalidArgument for a rule that does not exist, and for options that it has no use for.
Optimizer optimizer_for(const OptimizerOptions& options, const Model& model);

}  // namespace brigade::cli
