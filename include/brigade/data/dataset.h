// Rows that a network is fed, and what it should answer, in memory.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace brigade::data {

struct Dataset {
  torch::Tensor x = {};  // [rows, ...], on the CPU; readers of images give uint8
  torch::Tensor y = {};  // [rows], or [rows, ...] where a row has several answers; int64 or uint8, each in [0, classes)
  std::int64_t classes = 0;
  std::vector<std::string> class_names = {};  // of each class, where a reader has them; else empty

  std::int64_t rows() const { return x.defined() ? x.size(0) : 0; }
};

struct Splits {
  Dataset train = {};
  Dataset test = {};
};

}  // namespace brigade::data
