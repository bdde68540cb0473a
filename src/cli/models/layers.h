// Layers of libtorch with first values drawn from a key, so that a seed says them on any number of devices. Biases are zeros.
#pragma once

#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>

#include <cstdint>

#include "brigade/random/key.h"

namespace brigade::cli {

// Hands out one key after another.
class KeyChain {
 public:
  explicit KeyChain(random::Key key) : key_(key) {}
  random::Key next() { return random::split_at(key_, used_++); }

 private:
  random::Key key_;
  std::uint64_t used_ = 0;
};

// Weights by he_normal, for a ReLU behind them.
torch::nn::Linear linear(random::Key key, std::int64_t inputs, std::int64_t outputs);

// 3 x 3 with bias, as large as its input.
torch::nn::Conv2d convolution(random::Key key, std::int64_t inputs, std::int64_t outputs);

// Without bias, as a normalisation follows; padded by size / 2.
torch::nn::Conv2d plain_convolution(random::Key key, std::int64_t inputs, std::int64_t outputs, std::int64_t size,
                                    std::int64_t stride);

// Weights of mean 0 with this deviation. A deviation of 0 draws nothing.
torch::nn::Linear linear_of_deviation(random::Key key, std::int64_t inputs, std::int64_t outputs, double deviation);

}  // namespace brigade::cli
