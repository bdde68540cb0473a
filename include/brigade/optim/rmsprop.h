// RMSprop, in PyTorch's convention:
//
//   g = gradient + weight_decay * p
//   s = alpha * s + (1 - alpha) * g * g              square_avg
//   a = alpha * a + (1 - alpha) * g                  grad_avg, when centered
//   d = g / (sqrt(centered ? s - a * a : s) + eps)
//   b = momentum * b + d                             momentum_buffer, with momentum
//   p = p - learning_rate * (momentum ? b : d)
//
// All buffers start from 0. Rounding can make s - a * a negative when gradients hardly change; it counts as 0 then, where
// torch.optim.RMSprop gives NaN.
//
// Differences of optax.rmsprop: it divides by sqrt(s + eps) unless told otherwise, its decay is 0.9 by default where
// alpha is 0.99, it has no weight decay, and its momentum accumulates updates that the learning rate has been applied to,
// so that a change of rate shows only gradually.
//
// T. Tieleman, G. Hinton, "Lecture 6.5: RMSprop", Coursera, 2012; centered: A. Graves, "Generating sequences with
// recurrent neural networks", 2013, arXiv:1308.0850.
#pragma once

#include "brigade/optim/rule.h"

namespace brigade::optim {

struct RmspropOptions {
  double alpha = 0.99;  // below 1
  double eps = 1e-8;
  double weight_decay = 0;
  double momentum = 0;
  bool centered = false;
};

// Throws InvalidArgument for options that are out of range.
Rule rmsprop(RmspropOptions options = {});

}  // namespace brigade::optim
