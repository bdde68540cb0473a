// Adam and AdamW, in PyTorch's convention. With t = index + 1, counted from 1:
//
//   adam:   g = gradient + weight_decay * p
//   adamw:  g = gradient, and p = p * (1 - learning_rate * weight_decay) first
//   m = beta1 * m + (1 - beta1) * g                  exp_avg
//   v = beta2 * v + (1 - beta2) * g * g              exp_avg_sq
//   u = amsgrad ? (u = max(u, v)) : v                max_exp_avg_sq
//   p = p - learning_rate / (1 - beta1^t) * m / (sqrt(u) / sqrt(1 - beta2^t) + eps)
//
// Differences of optax: its amsgrad takes the maximum of the corrected v / (1 - beta2^t), which gives other steps as long
// as the correction matters; optax.adamw has a default weight decay of 1e-4 where torch.optim.AdamW has 1e-2;
// optax.adam has no weight decay. Without amsgrad both libraries agree.
//
// D. Kingma, J. Ba, "Adam: a method for stochastic optimization", ICLR 2015; I. Loshchilov, F. Hutter, "Decoupled weight
// decay regularization", ICLR 2019; S. Reddi, S. Kale, S. Kumar, "On the convergence of Adam and beyond", ICLR 2018.
#pragma once

#include "brigade/optim/rule.h"

namespace brigade::optim {

struct AdamOptions {
  double beta1 = 0.9;  // below 1, as beta2
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0;
  bool amsgrad = false;
};

struct AdamWOptions {
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0.01;
  bool amsgrad = false;
};

// Both throw InvalidArgument for options that are out of range.
Rule adam(AdamOptions options = {});
Rule adamw(AdamWOptions options = {});

}  // namespace brigade::optim
