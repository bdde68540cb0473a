// LARS: momentum SGD in which the update of each tensor is scaled by how large the tensor is compared to its gradient.
// Layer-wise: see rule.h for its two passes. As in optax.lars:
//
//   u = gradient + weight_decay * p
//   ratio = trust_coefficient * |p| / (|u| + eps), norms over the whole tensor; 1 when either norm is 0
//   t = learning_rate * ratio * u
//   v = t at the first step, momentum * v + t later  momentum_buffer, with momentum
//   p = p - (nesterov ? t + momentum * v : v)
//
// PyTorch has no LARS. Unlike in its SGD, the learning rate is applied before the momentum, so that a change of rate shows
// gradually. Without trust ratio (groups.h) the ratio is 1, not the trust coefficient.
//
// Y. You, I. Gitman, B. Ginsburg, "Large batch training of convolutional networks", 2017, arXiv:1708.03888.
#pragma once

#include "brigade/optim/rule.h"

namespace brigade::optim {

struct LarsOptions {
  double momentum = 0.9;
  double weight_decay = 0;
  double trust_coefficient = 0.001;
  double eps = 0;
  bool nesterov = false;  // needs a momentum
};

// Throws InvalidArgument for options that are negative, not finite or do not go together.
Rule lars(LarsOptions options = {});

}  // namespace brigade::optim
