// The memory of dense CPU tensors as the communication core sees it.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <span>

#include "brigade/comm/dtype.h"

namespace brigade::training {

inline std::span<std::byte> bytes_of(const at::Tensor& dense) {
  return {static_cast<std::byte*>(dense.data_ptr()), dense.nbytes()};
}

// Of a dtype that parameters may have.
comm::DType dtype_of(at::ScalarType type);

}  // namespace brigade::training
