// Two tensors out of files as one dataset.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <string>

#include "brigade/data/dataset.h"

namespace brigade::data {

struct NamedTensor {
  std::string name = {};  // where it comes from, for messages
  torch::Tensor tensor = {};
};

// Throws InvalidArgument for a number of classes below 0.
void check_classes(std::int64_t classes);

// Rows with their labels, whole numbers of any dtype, which become int64. classes = 0 takes the largest label plus one.
// Throws DataError when the two do not have the same rows, one or more, or a label is none.
Dataset pair_up(NamedTensor x, NamedTensor y, std::int64_t classes);

}  // namespace brigade::data
