// Stochastic gradient descent with momentum, in PyTorch's convention: the learning rate multiplies the velocity when it
// is applied, so a change of rate takes full effect at once.
//
//   g = gradient + weight_decay * p
//   v = g at the first step, momentum * v + (1 - dampening) * g later
//   p = p - learning_rate * (nesterov ? g + momentum * v : v), or - learning_rate * g without momentum
//
// I. Sutskever et al., "On the importance of initialization and momentum in deep learning", ICML 2013; torch.optim.SGD.
#pragma once

#include <torch/types.h>

#include <span>

#include "brigade/optim/step.h"

namespace brigade::optim {

struct SgdOptions {
  double momentum = 0;
  double dampening = 0;
  double weight_decay = 0;
  bool nesterov = false;  // needs a momentum, and no dampening
};

class Sgd {
 public:
  // Throws InvalidArgument for options that are negative, not finite or do not go together.
  explicit Sgd(SgdOptions options = {});

  const SgdOptions& options() const noexcept { return options_; }

  // 1 with momentum (the velocity), else 0.
  int state_buffers() const noexcept { return options_.momentum != 0 ? 1 : 0; }

  // Updates `parameters` and `velocity` in place; the spans do not overlap. All are of one length, but `velocity` may
  // be empty without momentum. Each product and sum is rounded by itself, so the bits depend neither on the processor's
  // vector width nor on where a span is cut. Throws ShapeError for lengths that differ, InvalidArgument for a rate that
  // is negative or not finite.
  void update(std::span<float> parameters, std::span<const float> gradient, std::span<float> velocity, Step step) const;

  // The same on tensors of one shape, dtype and device; `velocity` may be undefined without momentum. float32 on the
  // CPU with the same dense layout goes through the spans, all else through torch's operators, with torch.optim.SGD's
  // roundings.
  void update(const torch::Tensor& parameters, const torch::Tensor& gradient, const torch::Tensor& velocity,
              Step step) const;

 private:
  SgdOptions options_;
};

inline Sgd sgd(SgdOptions options = {}) { return Sgd(options); }

}  // namespace brigade::optim
