// LAMB: Adam in which the update of each tensor is scaled by how large the tensor is compared to the update. Layer-wise:
// see rule.h for its two passes. As in optax.lamb, with t = index + 1:
//
//   m = beta1 * m + (1 - beta1) * gradient           exp_avg
//   v = beta2 * v + (1 - beta2) * gradient^2         exp_avg_sq
//   u = m / (1 - beta1^t) / (sqrt(v / (1 - beta2^t)) + eps) + weight_decay * p
//   ratio = |p| / |u|, norms over the whole tensor; 1 when either norm is 0
//   p = p - learning_rate * ratio * u
//
// PyTorch has no LAMB. The paper lets a function of |p| bound the ratio; here, as in optax, it is |p| itself.
//
// Y. You et al., "Large batch optimization for deep learning: training BERT in 76 minutes", ICLR 2020.
#pragma once

#include "brigade/optim/rule.h"

namespace brigade::optim {

struct LambOptions {
  double beta1 = 0.9;  // below 1, as beta2
  double beta2 = 0.999;
  double eps = 1e-6;
  double weight_decay = 0;
};

// Throws InvalidArgument for options that are out of range.
Rule lamb(LambOptions options = {});

}  // namespace brigade::optim
