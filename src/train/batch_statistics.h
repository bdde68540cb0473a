// What batch normalization computes: statistics of a channel over several leaves, and the normalisation by them with its gradient.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>

namespace brigade::training {

// Of each channel, over all that is normalised together. float64.
struct BatchStatistics {
  at::Tensor mean = {};
  at::Tensor variance = {};  // biased
  double count = 0;          // values of a channel

  at::Tensor unbiased_variance() const { return variance.mul(count / (count - 1)); }
};

// Leaves whose numbers are summed: `size` consecutive ones, 0 for all of them. Of one, nothing meets.
struct LeafGroup {
  std::int64_t size = 0;
};

// Of x, [N, C, ...] in float32 or float64, over the group of the leaf that the calling thread runs.
BatchStatistics batch_statistics(const at::Tensor& x, LeafGroup group);

// (x - mean) / sqrt(variance + eps) * weight + bias by the statistics of x over its group, differentiable in all three tensors; the
// gradient of x is that through the statistics too. Its backward meets the group again, if x requires grad. `weight` and `bias`
// have x's dtype, or are undefined.
at::Tensor normalize(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                     const BatchStatistics& statistics, double eps, LeafGroup group);

}  // namespace brigade::training
