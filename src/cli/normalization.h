// Brings data to mean 0 and deviation 1, measured once on what is trained on.
#pragma once

#include <torch/types.h>

#include "brigade/data/dataset.h"

namespace brigade::cli {

// Of bytes taken for numbers from 0 to 1. They stay bytes until a device normalises the rows that it computes with.
struct ByteScale {
  double mean = 0;
  double std = 1;
};

// Over all elements of `bytes` (uint8). The deviation is 1 where they are all equal.
ByteScale byte_scale(const torch::Tensor& bytes);

// Numbers of any other dtype become float32 with mean 0 and deviation 1 over the training rows: each column of rows of
// numbers by itself, images as a whole. A column of equal numbers becomes zeros.
void standardize(data::Splits& splits);

}  // namespace brigade::cli
