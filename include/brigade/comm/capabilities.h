// What a group can do, as data that callers ask for before they call, so that nothing is found out by a throw.
#pragma once

#include <array>
#include <cstddef>

#include "brigade/comm/call.h"
#include "brigade/comm/dtype.h"

namespace brigade::comm {

struct Capabilities {
  // What all_reduce and reduce_scatter take of one dtype. Whatever cannot be reduced can still be moved.
  struct Reductions {
    bool sum = false;
    bool order = false;    // min and max
    bool divisor = false;  // other than 1
  };

  std::array<bool, kOperationCount> operations = {};
  std::array<Reductions, kDTypeCount> reductions = {};
  bool asynchronous = false;  // whether start() returns before the others have come

  const Reductions& of(DType dtype) const noexcept { return reductions[static_cast<std::size_t>(dtype)]; }
  bool takes(Operation operation) const noexcept { return operations[static_cast<std::size_t>(operation)]; }
  bool takes(Reduction reduction, DType dtype) const noexcept;
};

// Those of devices in one process: every operation; of our own reduction kernels (reduce.h), sums of everything but bool, min
// and max of everything but complex numbers, divisors for floating and complex dtypes.
const Capabilities& kernel_capabilities() noexcept;

}  // namespace brigade::comm
