// Reduction kernels: element-wise combination of spans in the fixed tree order, vectorised with run-time dispatch.
#pragma once

#include <cstddef>
#include <span>

#include "brigade/comm/dtype.h"
#include "brigade/comm/group.h"

namespace brigade::comm {

// out[k] = T(0, P) over inputs[0..P)[k], then divided by reduction.divisor. All spans hold the same number of bytes, a
// multiple of size_of(dtype). `out` may be one of the inputs exactly, or overlaps none.
// Throws InvalidArgument when the dtype is not reducible or an integer has a divisor.
void reduce(Reduction reduction, DType dtype, std::span<const std::span<const std::byte>> inputs,
            std::span<std::byte> out);

}  // namespace brigade::comm
