// Adagrad, in PyTorch's convention:
//
//   g = gradient + weight_decay * p
//   s = s + g * g                                    sum; s = initial_accumulator_value before the first step
//   p = p - learning_rate / (1 + index * lr_decay) * g / (sqrt(s) + eps)
//
// Differences of optax.adagrad: it divides by sqrt(s + eps), with eps 1e-7, starts from 0.1 by default, and has neither
// weight decay nor lr_decay (a schedule does the same).
//
// J. Duchi, E. Hazan, Y. Singer, "Adaptive subgradient methods for online learning and stochastic optimization", JMLR 2011.
#pragma once

#include "brigade/optim/rule.h"

namespace brigade::optim {

struct AdagradOptions {
  double lr_decay = 0;
  double weight_decay = 0;
  double initial_accumulator_value = 0;
  double eps = 1e-10;
};

// Throws InvalidArgument for options that are negative or not finite.
Rule adagrad(AdagradOptions options = {});

}  // namespace brigade::optim
