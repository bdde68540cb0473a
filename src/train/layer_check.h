// Layers of libtorch that do not fit a step in leaves.
#pragma once

#include <source_location>

#include "brigade/train/options.h"
#include "brigade/train/replica.h"

namespace brigade::training {

// Looks for modules whose numbers come from the rows of one leaf only, or from the one generator of the process: BatchNorm,
// InstanceNorm with running statistics, Dropout and what has it inside. Where bits are promised (logical_shards) it throws
// InvalidArgument, with their names and what to take instead; else it warns once. What a forward calls as a function, such as
// torch::dropout, cannot be seen.
void check_layers(const Replica& replica, const DataParallelOptions& options, std::source_location site);

}  // namespace brigade::training
