// Images with their labels, in memory.
#pragma once

#include <torch/types.h>

#include <cstdint>

namespace brigade::data {

struct Dataset {
  torch::Tensor images = {};  // [rows, ...], on the CPU; readers of images give uint8
  torch::Tensor labels = {};  // [rows], int64 or uint8, each in [0, classes)
  std::int64_t classes = 0;

  std::int64_t rows() const { return images.defined() ? images.size(0) : 0; }
};

struct Splits {
  Dataset train = {};
  Dataset test = {};
};

}  // namespace brigade::data
