// Between tensors and what the parsers know of them: a dtype of the communication core, and bytes.
#pragma once

#include <torch/types.h>

#include <cstddef>
#include <optional>
#include <span>

#include "brigade/comm/dtype.h"

namespace brigade::data {

at::ScalarType scalar_type_of(comm::DType dtype) noexcept;
std::optional<comm::DType> dtype_of(at::ScalarType type) noexcept;

// The memory of a contiguous tensor on the CPU.
std::span<std::byte> bytes_of(const torch::Tensor& tensor);

}  // namespace brigade::data
