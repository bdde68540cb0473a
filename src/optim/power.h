// Powers whose bits do not depend on the processor, as those of std::pow may.
#pragma once

#include <cstdint>

namespace brigade::optim {

// base^exponent by repeated squaring, for an exponent of 0 or more. Of numbers from 0 to 1 within 1e-13 / (1 - base).
inline double power(double base, std::int64_t exponent) {
  double result = 1;
  for (; exponent > 0; exponent /= 2) {
    if (exponent % 2 == 1) result *= base;
    base *= base;
  }
  return result;
}

}  // namespace brigade::optim
