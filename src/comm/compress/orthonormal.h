// Orthonormal columns, in double and in a fixed order.
#pragma once

#include <cstddef>
#include <span>

namespace brigade::comm {

// To length 1. False, and `column` is as it was, when it has none: all zeros, or not finite.
bool normalise(std::span<float> column);

// Columns of `rows` numbers, one after the other, by Gram-Schmidt from the first to the last. One that depends on those before it
// becomes zeros. When a number is not finite, all become NaN.
void make_orthonormal(std::span<float> columns, std::size_t rows);

}  // namespace brigade::comm
