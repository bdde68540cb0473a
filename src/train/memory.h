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

// sum += addend, of one such dtype and one layout.
void add_in_place(const at::Tensor& sum, const at::Tensor& addend);

}  // namespace brigade::training
