#include "normalization.h"

#include <ATen/ATen.h>

#include <array>
#include <cmath>
#include <cstdint>

namespace brigade::cli {

ByteScale byte_scale(const torch::Tensor& bytes) {
  const torch::Tensor dense = bytes.contiguous();
  std::array<std::int64_t, 256> counts = {};
  const auto* values = dense.data_ptr<std::uint8_t>();
  for (std::int64_t i = 0; i < dense.numel(); ++i) ++counts[values[i]];
  double sum = 0;
  double squares = 0;
  for (std::size_t value = 0; value < counts.size(); ++value) {
    const double scaled = static_cast<double>(value) / 255;
    sum += static_cast<double>(counts[value]) * scaled;
    squares += static_cast<double>(counts[value]) * scaled * scaled;
  }
  const auto count = static_cast<double>(dense.numel());
  const double mean = sum / count;
  const double variance = squares / count - mean * mean;
  return {.mean = mean, .std = variance > 1e-12 ? std::sqrt(variance) : 1};
}

void standardize(data::Splits& splits) {
  const torch::Tensor train = splits.train.x.to(at::kDouble);
  // With one number a column even rows of one number have an axis to measure along.
  const bool by_column = train.dim() == 2;
  const torch::Tensor columns = by_column ? train : train.reshape({-1, 1});
  const torch::Tensor mean = columns.mean(0);
  torch::Tensor std = (columns - mean).square().mean(0).sqrt();
  std = std.masked_fill(std.le(1e-12 * mean.abs().clamp_min(1)), 1);
  for (data::Dataset* part : {&splits.train, &splits.test}) {
    part->x = ((part->x.to(at::kDouble) - mean) / std).to(at::kFloat);
  }
}

}  // namespace brigade::cli
