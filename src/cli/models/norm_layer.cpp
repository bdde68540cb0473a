#include "norm_layer.h"

namespace brigade::cli {

nn::SyncBatchNorm norm_layer(Norm norm, std::int64_t channels) {
  return nn::SyncBatchNorm(channels, {.group = norm == Norm::kLeaf ? 1 : 0});
}

}  // namespace brigade::cli
