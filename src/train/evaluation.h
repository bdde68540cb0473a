// Sums of something over rows, without gradients.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <vector>

#include "brigade/runtime/axis.h"
#include "brigade/runtime/body.h"
#include "brigade/train/options.h"
#include "brigade/train/trainer.h"
#include "leaf_plan.h"

namespace brigade::training {

// What `measure` gives for each leaf of `plan`, by the devices of `axis`, added up in the order of leaves. The modules of
// `replicas` are in evaluation mode meanwhile, and in the modes that they had afterwards, also when it throws.
std::vector<at::Tensor> evaluate(Axis& axis, const LeafPlan& plan, const std::vector<Replica>& replicas,
                                 const DataParallelOptions& options, Trainer::Measure measure);

// Modules that are in evaluation mode as a whole are to be trained; layers that a program keeps so stay.
void begin_training(const std::vector<Replica>& replicas);

// Where bits are promised.
std::optional<OneThreadInOperators> operators_of_one_thread(const DataParallelOptions& options);

}  // namespace brigade::training
