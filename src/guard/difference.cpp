#include "guard/difference.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <type_traits>

namespace brigade::guard {
namespace {

// A format has
//   Bits           what lies in memory
//   is_nan(bits)
//   order(bits)    a number that grows by one from each value to the next
//   text(bits)
template <class T>
struct Integer {
  using Bits = std::make_unsigned_t<T>;
  static bool is_nan(Bits) { return false; }
  static std::uint64_t order(Bits bits) {
    constexpr Bits kSign = std::is_signed_v<T> ? static_cast<Bits>(Bits{1} << (8 * sizeof(T) - 1)) : Bits{0};
    return static_cast<Bits>(bits ^ kSign);
  }
  static std::string text(Bits bits) { return fmt::format("{}", static_cast<std::int64_t>(static_cast<T>(bits))); }
};

// `kExponent` bits of exponent; value() is exact in its type, and as many digits are printed as tell two numbers apart.
template <class B, int kExponent, class Value, Value (*value)(B)>
struct Float {
  using Bits = B;
  static constexpr int kBits = 8 * sizeof(B);
  static constexpr B kSign = static_cast<B>(B{1} << (kBits - 1));
  static constexpr B kInfinity = static_cast<B>(((B{1} << kExponent) - 1) << (kBits - 1 - kExponent));

  static bool is_nan(B bits) { return static_cast<B>(bits & ~kSign) > kInfinity; }
  static std::uint64_t order(B bits) { return static_cast<B>((bits & kSign) != 0 ? ~bits : bits | kSign); }
  static std::string text(B bits) {
    return is_nan(bits) ? fmt::format("nan (0x{:x})", bits) : fmt::format("{}", value(bits));
  }
};

float float_of_bfloat16(std::uint16_t bits) { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); }

float float_of_float16(std::uint16_t bits) {
  const int exponent = bits >> 10 & 0x1f;
  const int fraction = bits & 0x3ff;
  const float magnitude = exponent == 0x1f ? HUGE_VALF
                          : exponent == 0  ? std::ldexp(static_cast<float>(fraction), -24)
                                           : std::ldexp(static_cast<float>(fraction | 0x400), exponent - 25);
  return (bits & 0x8000) != 0 ? -magnitude : magnitude;
}

float float_of_float32(std::uint32_t bits) { return std::bit_cast<float>(bits); }
double double_of_float64(std::uint64_t bits) { return std::bit_cast<double>(bits); }

using Float16 = Float<std::uint16_t, 5, float, float_of_float16>;
using BFloat16 = Float<std::uint16_t, 8, float, float_of_bfloat16>;
using Float32 = Float<std::uint32_t, 8, float, float_of_float32>;
using Float64 = Float<std::uint64_t, 11, double, double_of_float64>;

struct Bool : Integer<std::uint8_t> {
  static bool is_nan(Bits) { return true; }  // no distances
  static std::string text(Bits bits) { return bits == 0 ? "false" : "true"; }
};

template <class Format>
std::optional<ElementDifferences> compare(std::span<const std::byte> one, std::span<const std::byte> other) {
  using Bits = typename Format::Bits;
  ElementDifferences found;
  std::uint64_t largest = 0;
  bool has_distance = true;
  for (std::size_t i = 0; i < one.size() / sizeof(Bits); ++i) {
    Bits a, b;
    std::memcpy(&a, one.data() + i * sizeof(Bits), sizeof(Bits));
    std::memcpy(&b, other.data() + i * sizeof(Bits), sizeof(Bits));
    if (a == b) continue;
    if (found.count++ == 0) {
      found.first = i;
      found.values[0] = Format::text(a);
      found.values[1] = Format::text(b);
    }
    has_distance = has_distance && !Format::is_nan(a) && !Format::is_nan(b);
    const std::uint64_t x = Format::order(a), y = Format::order(b);
    largest = std::max(largest, x > y ? x - y : y - x);
  }
  if (found.count == 0) return std::nullopt;
  if (has_distance) found.largest_ulps = largest;
  return found;
}

}  // namespace

std::optional<ElementDifferences> differences(comm::DType dtype, std::span<const std::byte> one,
                                              std::span<const std::byte> other) {
  switch (dtype) {
    case comm::DType::kBool:
      return compare<Bool>(one, other);
    case comm::DType::kUint8:
      return compare<Integer<std::uint8_t>>(one, other);
    case comm::DType::kInt8:
      return compare<Integer<std::int8_t>>(one, other);
    case comm::DType::kInt16:
      return compare<Integer<std::int16_t>>(one, other);
    case comm::DType::kInt32:
      return compare<Integer<std::int32_t>>(one, other);
    case comm::DType::kInt64:
      return compare<Integer<std::int64_t>>(one, other);
    case comm::DType::kFloat16:
      return compare<Float16>(one, other);
    case comm::DType::kBFloat16:
      return compare<BFloat16>(one, other);
    case comm::DType::kFloat32:
    case comm::DType::kComplex64:  // its parts one by one
      return compare<Float32>(one, other);
    case comm::DType::kFloat64:
    case comm::DType::kComplex128:
      return compare<Float64>(one, other);
  }
  return std::nullopt;
}

}  // namespace brigade::guard
