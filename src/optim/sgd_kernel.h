// The vector loop of SGD, free of torch.
#pragma once

#include <cstddef>

namespace brigade::optim::kernels {

struct SgdFactors {
  float learning_rate;
  float momentum;
  float gradient_share;  // 1 - dampening
  float weight_decay;
  bool nesterov;
  bool first;  // velocity holds nothing yet
};

// `count` elements each; velocity is null without momentum.
void sgd(const SgdFactors& factors, std::size_t count, float* parameters, const float* gradient, float* velocity);

}  // namespace brigade::optim::kernels
