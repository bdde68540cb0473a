// What the networks of the program have in common, and what they are made for.
#pragma once

#include <torch/nn/module.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "brigade/random/key.h"
#include "norm_layer.h"

namespace brigade::cli {

class Network : public torch::nn::Module {
 public:
  // Scores, not yet probabilities: [rows, classes] for x [rows, ...] of floating point, [rows, length, classes] for bytes
  // x [rows, length].
  virtual torch::Tensor forward(const torch::Tensor& x) = 0;
};

// What the first and the last layer follow from.
struct DataShape {
  std::vector<std::int64_t> row = {};  // sizes of one row of x: {28, 28}, {3, 64, 64}, {4}
  std::int64_t classes = 0;

  std::int64_t numbers() const;  // in a row
};

// Of a row that is an image, [height, width] or [channels, height, width].
struct ImageShape {
  std::int64_t channels = 1;
  std::int64_t height = 0;
  std::int64_t width = 0;
};

// Throws InvalidArgument, naming the model, when rows are no images of at least `smallest` pixels either way.
ImageShape image_shape(const DataShape& shape, const char* model, std::int64_t smallest);

struct NetworkOptions {
  random::Key key = {};     // of the first values of all parameters
  Norm norm = Norm::kLeaf;  // where a network has such layers
  double dropout = 0;       // likewise: the share that is dropped in training
};

}  // namespace brigade::cli
