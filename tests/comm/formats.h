// Dtypes that C++ has no type for, and their arithmetic by definition: slow, and with nothing in common with the kernels.
#pragma once

#include <algorithm>
#include <cmath>
#include <compare>
#include <concepts>
#include <cstdint>
#include <limits>

namespace brigade::comm::testing {

struct Bool {
  std::uint8_t bits = 0;
};

// IEEE 754's format of 16 bits, so many of them for the exponent.
template <int kExponentBits>
struct Narrow {
  static constexpr int kFractionBits = 15 - kExponentBits;
  static constexpr int kBias = (1 << (kExponentBits - 1)) - 1;
  static constexpr std::uint16_t kInfinity = 0x7FFF >> kFractionBits << kFractionBits;
  static constexpr std::uint16_t kNan = kInfinity | 1 << (kFractionBits - 1);

  std::uint16_t bits = 0;

  // The number that these bits without a sign stand for; at kInfinity, the one that would come next.
  static double magnitude(int bits) {
    const int exponent = bits >> kFractionBits;
    const int fraction = bits & ((1 << kFractionBits) - 1);
    const int significand = exponent == 0 ? fraction : fraction | 1 << kFractionBits;
    return std::ldexp(significand, std::max(exponent, 1) - kBias - kFractionBits);
  }
};

using Float16 = Narrow<5>;
using BFloat16 = Narrow<8>;

template <class T>
concept IsNarrow = std::same_as<T, Float16> || std::same_as<T, BFloat16>;

template <IsNarrow T>
bool is_nan(T x) {
  return (x.bits & 0x7FFF) > T::kInfinity;
}

template <IsNarrow T>
float value_of(T x) {
  const float sign = (x.bits & 0x8000) == 0 ? 1.0F : -1.0F;
  const int bits = x.bits & 0x7FFF;
  if (bits > T::kInfinity) return std::copysign(std::numeric_limits<float>::quiet_NaN(), sign);
  if (bits == T::kInfinity) return std::copysign(std::numeric_limits<float>::infinity(), sign);
  return std::copysign(static_cast<float>(T::magnitude(bits)), sign);
}

// x / y rounded once, to nearest even. y has at most 52 significant bits: its product with the middle of two numbers is then
// exact in a long double.
template <IsNarrow T>
T quotient_of(float x, double y = 1.0) {
  static_assert(std::numeric_limits<long double>::digits >= 64);
  const long double dividend = std::fabs(x);
  const long double divisor = std::fabs(y);
  if (std::isnan(dividend / divisor)) return {T::kNan};
  // The largest magnitude that is not above the quotient. Zeros and infinities follow from the comparisons.
  int below = 0;
  for (int step = 0x4000; step > 0; step /= 2) {
    if (below + step <= T::kInfinity && T::magnitude(below + step) * divisor <= dividend) below += step;
  }
  int nearest = below;
  if (below < T::kInfinity) {
    const long double middle = (static_cast<long double>(T::magnitude(below)) + T::magnitude(below + 1)) / 2;
    const std::partial_ordering side = dividend <=> middle * divisor;
    if (side > 0 || (side == 0 && below % 2 == 1)) nearest = below + 1;
  }
  const int sign = std::signbit(x) != std::signbit(y) ? 0x8000 : 0;
  return {static_cast<std::uint16_t>(nearest | sign)};
}

}  // namespace brigade::comm::testing
