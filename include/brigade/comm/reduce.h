// Reduction kernels: element-wise combination of spans in the fixed tree order, vectorised with run-time dispatch. The
// bits are the same on every instruction set.
//
// | dtype               | sum                                     | min, max          | divisor |
// |---------------------|-----------------------------------------|-------------------|---------|
// | bool                | none: sum as int32                      | all, any          | none    |
// | uint8, int8 ... 64  | wraps in its own width                  | yes               | none    |
// | float16, bfloat16   | in float32, rounded once, at the end    | yes, exact        | any     |
// | float32, float64    | yes                                     | yes               | any     |
// | complex64, 128      | of real and imaginary parts             | none: no order    | any     |
//
// Rounding is to nearest, ties to even. A quotient is rounded once: it is the exact quotient of the combined value by the
// divisor, rounded to the dtype. For float16 and bfloat16 the combined value is the float32 of the tree, so a mean does
// not overflow where only its sum would; a sum beyond the largest number is infinite.
// A NaN wins every combination, and results hold one NaN only, the quiet one that is positive and has no payload. A single
// input with divisor 1 is copied as it is.
#pragma once

#include <cstddef>
#include <span>

#include "brigade/comm/dtype.h"
#include "brigade/comm/group.h"

namespace brigade::comm {

// out[k] = T(0, P) over inputs[0..P)[k], then divided by reduction.divisor. All spans hold the same number of bytes, a
// multiple of size_of(dtype). `out` may be one of the inputs exactly, or overlaps none.
// Throws InvalidArgument when kernel_capabilities() does not take the reduction of this dtype.
void reduce(Reduction reduction, DType dtype, std::span<const std::span<const std::byte>> inputs,
            std::span<std::byte> out);

}  // namespace brigade::comm
