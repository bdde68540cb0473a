#include "norm_layer.h"

#include <torch/nn/modules/batchnorm.h>

namespace brigade::cli {

torch::nn::AnyModule norm_layer(Norm norm, std::int64_t channels) {
  switch (norm) {
    case Norm::kBatch:
      break;
  }
  return torch::nn::AnyModule(torch::nn::BatchNorm2d(channels));
}

}  // namespace brigade::cli
