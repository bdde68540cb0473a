// bfloat16 arithmetic around a loss function, by libtorch's autocast.
#pragma once

#include "brigade/train/options.h"

namespace brigade::training {

class PrecisionScope {
 public:
  explicit PrecisionScope(Precision precision);
  ~PrecisionScope();
  PrecisionScope(const PrecisionScope&) = delete;
  PrecisionScope& operator=(const PrecisionScope&) = delete;

 private:
  bool casts_;
  bool before_ = false;
  at::ScalarType type_before_ = at::kBFloat16;
};

}  // namespace brigade::training
