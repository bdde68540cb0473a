// The learning rate that the command line asks for.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "brigade/optim/schedule.h"
#include "optimizer.h"
#include "train_options.h"

namespace brigade::cli {

std::vector<std::string> schedule_names();
std::vector<std::string> scaling_names();

// Over a run of `steps` steps. Throws InvalidArgument for names that do not exist and for what does not go together.
schedule::Schedule schedule_for(const RateOptions& options, const Optimizer& optimizer, std::int64_t steps);

}  // namespace brigade::cli
