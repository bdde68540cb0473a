// The one place where a network of the program gets a layer that normalises over the rows of a batch.
#pragma once

#include <cstdint>

#include "brigade/train/batch_norm.h"

namespace brigade::cli {

enum class Norm {
  kLeaf,  // over the rows that a device takes at once
  kStep,  // over all rows of the step, on all devices
};

// With libtorch's names and numbers, and running statistics that are the same on all devices.
nn::SyncBatchNorm norm_layer(Norm norm, std::int64_t channels);

}  // namespace brigade::cli
