// The ratio of norms by which layer-wise rules scale a tensor's update.
#pragma once

namespace brigade::optim {

// 1 where a norm is 0, as parameters that are 0 could never move.
inline double trust_ratio(double parameter_norm, double direction_norm, double coefficient, double eps) {
  if (parameter_norm == 0 || direction_norm == 0) return 1;
  return coefficient * parameter_norm / (direction_norm + eps);
}

}  // namespace brigade::optim
