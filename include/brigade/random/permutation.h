// Random orders.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>

#include "brigade/random/key.h"

namespace brigade::random {

// The numbers 0 to n - 1 in random order, as kLong [n], ready to index with. Sorts by random bits as often as makes a
// tie in all rounds unlikely; jax.random.permutation gives the same order. Throws InvalidArgument for n < 0 or n >
// 2^32.
at::Tensor permutation(Key key, std::int64_t n);

// `x` with its slices along `dim` in random order: x.index_select(dim, permutation(key, x.size(dim))). Differentiable.
// Throws ShapeError when x is a scalar or has no such dimension.
at::Tensor permutation(Key key, const at::Tensor& x, std::int64_t dim = 0);

}  // namespace brigade::random
