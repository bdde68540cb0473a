#include "brigade/comm/reduce.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "comm/checks.h"
#include "comm/reduce_kernels.h"

namespace brigade::comm {
namespace {

// x / y, rounded once to float, for a divisor that no float holds. The quotient in double is first rounded to odd: with
// 53 >= 2 + 24 bits, rounding that to float is as good as rounding the exact quotient (S. Boldo, G. Melquiond,
// "Emulation of FMA and correctly rounded sums: proved algorithms using rounding to odd", 2008).
float divide_once(float x, double y) {
  const double quotient = x / y;
  const double missing = std::fma(-quotient, y, static_cast<double>(x));  // exact: x - quotient * y
  if (!std::isfinite(quotient) || !std::isfinite(missing) || missing == 0.0) return static_cast<float>(quotient);
  auto bits = std::bit_cast<std::uint64_t>(quotient);
  if (bits % 2 == 0 && quotient != 0.0) {
    const bool exact_is_larger = (missing > 0.0) == (y > 0.0);
    const bool away_from_zero = exact_is_larger == (quotient > 0.0);
    bits += away_from_zero ? std::uint64_t{1} : ~std::uint64_t{0};
  }
  return static_cast<float>(std::bit_cast<double>(bits));
}

void divide_floats(std::span<std::byte> values, double divisor) {
  for (std::size_t at = 0; at < values.size(); at += sizeof(float)) {
    float value;
    std::memcpy(&value, &values[at], sizeof value);
    value = divide_once(value, divisor);
    std::memcpy(&values[at], &value, sizeof value);
  }
}

}  // namespace

void reduce(Reduction reduction, DType dtype, std::span<const std::span<const std::byte>> inputs,
            std::span<std::byte> out) {
  check_reduction(reduction, dtype);
  check_reduce_spans(dtype, inputs, out);
  reduce_unchecked(reduction, dtype, inputs, out);
}

void reduce_unchecked(Reduction reduction, DType dtype, std::span<const std::span<const std::byte>> inputs,
                      std::span<std::byte> out) noexcept {
  if (out.empty()) return;
  // One value needs no combining and keeps its bits, a NaN's too.
  if (inputs.size() == 1 && reduction.divisor == 1.0) {
    if (inputs[0].data() != out.data()) std::memcpy(out.data(), inputs[0].data(), out.size());
    return;
  }
  const bool odd_divisor = dtype == DType::kFloat32 &&
                           static_cast<double>(static_cast<float>(reduction.divisor)) != reduction.divisor &&
                           !std::isnan(reduction.divisor);
  if (!odd_divisor) return reduce_vectorised(reduction, dtype, inputs, out);
  reduce_vectorised({.op = reduction.op}, dtype, inputs, out);
  divide_floats(out, reduction.divisor);
}

}  // namespace brigade::comm
