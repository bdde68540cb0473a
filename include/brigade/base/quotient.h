// Quotients that are rounded once, whatever format they end in.
//
// A number is rounded to odd by taking it as it is when the format holds it, and otherwise the neighbour, of the two, whose
// last bit is 1. Rounding such a number to nearest in a format with at least two bits less gives what rounding the exact
// number gives (S. Boldo, G. Melquiond, "Emulation of FMA and correctly rounded sums: proved algorithms using rounding to
// odd", 2008).
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <type_traits>

namespace brigade {

// From a number that was rounded to nearest, and the side of it on which the exact one lies.
template <class T>
T rounded_to_odd(T nearest, bool exact_is_larger) noexcept {
  using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
  const Bits bits = std::bit_cast<Bits>(nearest);
  if (bits % 2 == 1) return nearest;
  const bool away_from_zero = exact_is_larger != std::signbit(nearest);
  return std::bit_cast<T>(away_from_zero ? bits + 1 : bits - 1);
}

// x / y in double, rounded to odd.
inline double odd_quotient(float x, double y) noexcept {
  const double quotient = x / y;
  const double missing = std::fma(-quotient, y, static_cast<double>(x));  // exact: x - quotient * y
  if (quotient == 0.0 || !std::isfinite(quotient) || !std::isfinite(missing) || missing == 0.0) return quotient;
  return rounded_to_odd(quotient, (missing > 0.0) == (y > 0.0));
}

// x / y, rounded to nearest in float32.
inline float float_quotient(float x, double y) noexcept { return static_cast<float>(odd_quotient(x, y)); }

// x / y in float32, rounded to odd, to be rounded to nearest in a format of 16 bits.
inline float odd_float_quotient(float x, double y) noexcept {
  const double quotient = odd_quotient(x, y);
  const auto nearest = static_cast<float>(quotient);
  if (std::isnan(quotient) || static_cast<double>(nearest) == quotient) return nearest;
  return rounded_to_odd(nearest, quotient > static_cast<double>(nearest));
}

}  // namespace brigade
