// How far what arrived is from what was sent.
#pragma once

#include <cmath>
#include <limits>
#include <span>

namespace brigade::comm {

struct Distortion {
  double squared_norm = 0;   // |sent|^2
  double squared_error = 0;  // |sent - received|^2

  // |sent - received| / |sent|. 0 when both are zeros.
  double relative() const {
    if (squared_error == 0) return 0;
    return squared_norm == 0 ? std::numeric_limits<double>::infinity() : std::sqrt(squared_error / squared_norm);
  }
};

// In double, in one fixed order. Throws ShapeError when one has more numbers than the other.
Distortion distortion(std::span<const float> sent, std::span<const float> received);

}  // namespace brigade::comm
