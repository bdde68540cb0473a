// From stored bytes to what a network is fed.
#pragma once

#include <torch/types.h>

namespace brigade::data {

// (bytes / 255 - mean) / std as float32, of the same shape and on the same device as `bytes` (uint8). Meant for the
// device's thread: images travel as bytes, a quarter of the memory. The bits do not depend on the processor's vector
// width. Throws InvalidArgument when `bytes` is not uint8, or std is not above zero.
torch::Tensor normalize(const torch::Tensor& bytes, double mean, double std);

}  // namespace brigade::data
