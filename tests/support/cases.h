// Recorded cases as tensors.
#pragma once

#include <ATen/ATen.h>

#include <nlohmann/json.hpp>

#include "support/case_files.h"

namespace brigade::cases {

// The tensor that {"dtype", "shape", "data"} describes. Complex numbers are pairs; unsigned integers above 8 bits come
// as the signed type of their width, with the same bits.
at::Tensor tensor_of(const nlohmann::json& array);

}  // namespace brigade::cases
