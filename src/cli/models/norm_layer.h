// The one place where a network of the program gets a layer that normalises over the rows of a batch.
#pragma once

#include <torch/nn/modules/container/any.h>

#include <cstdint>

namespace brigade::cli {

enum class Norm {
  kBatch,  // torch's BatchNorm2d: over the rows of one leaf; running statistics are those of the first device
};

// For images with so many channels.
torch::nn::AnyModule norm_layer(Norm norm, std::int64_t channels);

}  // namespace brigade::cli
