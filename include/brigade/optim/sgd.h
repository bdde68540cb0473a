// Stochastic gradient descent with momentum, in PyTorch's convention: the learning rate multiplies the velocity when it
// is applied, so a change of rate takes full effect at once.
//
//   g = gradient + weight_decay * p
//   v = g at the first step, momentum * v + (1 - dampening) * g later
//   p = p - learning_rate * (nesterov ? g + momentum * v : v), or - learning_rate * g without momentum
//
// State: momentum_buffer (v), with momentum only. optax.sgd is the same with neither dampening nor weight decay, which
// optax adds by a transformation of its own.
//
// I. Sutskever et al., "On the importance of initialization and momentum in deep learning", ICML 2013; torch.optim.SGD.
#pragma once

#include "brigade/optim/rule.h"

namespace brigade::optim {

struct SgdOptions {
  double momentum = 0;
  double dampening = 0;
  double weight_decay = 0;
  bool nesterov = false;  // needs a momentum, and no dampening
};

// Throws InvalidArgument for options that are negative, not finite or do not go together.
Rule sgd(SgdOptions options = {});

}  // namespace brigade::optim
