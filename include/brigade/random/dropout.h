// Dropout whose mask depends on a key, so that it is the same on one device or eight, and when a step is repeated.
//
// N. Srivastava et al., "Dropout: a simple way to prevent neural networks from overfitting", JMLR 15, 2014. The mask
// and the scaling are those of flax.linen.Dropout.
#pragma once

#include <ATen/ATen.h>

#include "brigade/random/key.h"

namespace brigade::random {

// kBool of `shape`: true for an element to keep, with probability 1 - rate. Throws InvalidArgument unless 0 <= rate
// < 1.
at::Tensor dropout_mask(Key key, at::IntArrayRef shape, double rate);

// x / (1 - rate) where dropout_mask keeps the element and 0 elsewhere; `x` itself when the rate is 0. Differentiable in
// x. Throws InvalidArgument for a rate outside [0, 1) or an x that is not floating point.
at::Tensor dropout(Key key, const at::Tensor& x, double rate);

}  // namespace brigade::random
