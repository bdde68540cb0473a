// Passes over a block of elements that lies in the first-level cache: bits first, then each function in a pass of its
// own.
//
// A pass handles a whole number of kPad elements, which is a whole number of vectors on every target, so the last few
// elements of a draw take the same path as all others.

#if defined(BRIGADE_RANDOM_PASSES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BRIGADE_RANDOM_PASSES_INL_H_
#undef BRIGADE_RANDOM_PASSES_INL_H_
#else
#define BRIGADE_RANDOM_PASSES_INL_H_
#endif

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "hwy/highway.h"
#include "random/kernels.h"
#include "random/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace brigade::random::HWY_NAMESPACE {

using kernels::IntegerRange;
using kernels::Interval;

constexpr std::size_t kBlock = 1024;
constexpr std::size_t kPad = std::max<std::size_t>(64, std::size_t{2} * HWY_MAX_BYTES / sizeof(std::uint32_t));
static_assert(kBlock % kPad == 0);

// store(d, i, b0, b1) for the blocks of the counters from first + i on, a vector of them at a time. The counters share
// their upper half: draw() sees to it.
template <class Store>
HWY_INLINE void threefry_pass(ThreefryKey key, std::uint64_t first, std::size_t count, const Store& store) {
  const hn::ScalableTag<std::uint32_t> d;
  const std::size_t lanes = hn::Lanes(d);
  const auto high = hn::Set(d, static_cast<std::uint32_t>(first >> 32));
  const auto low = hn::Iota(d, static_cast<std::uint32_t>(first));
  // Each of the 20 rounds waits for the one before; two vectors in flight give the processor 15 % more to do.
  for (std::size_t i = 0; i < count; i += 2 * lanes) {
    auto x0 = high;
    auto x1 = hn::Add(low, hn::Set(d, static_cast<std::uint32_t>(i)));
    auto y0 = high;
    auto y1 = hn::Add(low, hn::Set(d, static_cast<std::uint32_t>(i + lanes)));
    threefry(d, key, x0, x1);
    threefry(d, key, y0, y1);
    store(d, i, x0, x1);
    store(d, i + lanes, y0, y1);
  }
}

HWY_INLINE void bits_pass(ThreefryKey key, std::uint64_t first, std::size_t count, std::uint32_t* HWY_RESTRICT out) {
  threefry_pass(key, first, count,
                [out](auto d, std::size_t i, auto b0, auto b1) HWY_ATTR { hn::StoreU(hn::Xor(b0, b1), d, out + i); });
}

HWY_INLINE void bits_pass(ThreefryKey key, std::uint64_t first, std::size_t count, std::uint64_t* HWY_RESTRICT out) {
  static_assert(std::endian::native == std::endian::little, "b1 is the lower half of the 64 bits");
  threefry_pass(key, first, count, [out](auto d, std::size_t i, auto b0, auto b1) HWY_ATTR {
    hn::StoreInterleaved2(b1, b0, d, reinterpret_cast<std::uint32_t*>(out + i));
  });
}

// Bits to numbers in [0, 1): the upper ones become the mantissa of a number in [1, 2).
template <class D>
HWY_INLINE hn::Vec<D> unit_interval(D d, hn::Vec<hn::RebindToUnsigned<D>> bits) {
  const hn::RebindToUnsigned<D> integers;
  const auto one = hn::Set(d, 1);
  constexpr int kSignAndExponentBits = sizeof(hn::TFromD<D>) == 4 ? 9 : 12;
  return hn::Sub(hn::BitCast(d, hn::Or(hn::ShiftRight<kSignAndExponentBits>(bits), hn::BitCast(integers, one))), one);
}

// Two roundings are one when the first is exact (a power of two times f) or the second is (adding zero).
template <class T>
HWY_INLINE bool rounds_once(Interval<T> interval) {
  int exponent = 0;
  const bool is_power_of_two = std::frexp(interval.range, &exponent) == T{0.5};
  return interval.low == 0 || (is_power_of_two && exponent > std::numeric_limits<T>::min_exponent + 60);
}

template <class T, class Word>
HWY_INLINE void plain_uniform_pass(Interval<T> interval, const Word* HWY_RESTRICT bits, std::size_t count,
                                   T* HWY_RESTRICT out) {
  const hn::ScalableTag<T> d;
  const auto low = hn::Set(d, interval.low);
  const auto range = hn::Set(d, interval.range);
  for (std::size_t i = 0; i < count; i += hn::Lanes(d)) {
    const auto f = unit_interval(d, hn::Load(hn::RebindToUnsigned<decltype(d)>(), bits + i));
    hn::StoreU(hn::Max(low, hn::Add(hn::Mul(f, range), low)), d, out + i);
  }
}

HWY_INLINE void uniform_pass(Interval<float> interval, const std::uint32_t* HWY_RESTRICT bits, std::size_t count,
                             float* HWY_RESTRICT out) {
  if (rounds_once(interval)) return plain_uniform_pass(interval, bits, count, out);
  const hn::ScalableTag<double> d;
  const hn::Rebind<float, decltype(d)> floats;
  const hn::Rebind<std::uint32_t, decltype(d)> words;
  const auto low = hn::Set(d, interval.low);
  const auto range = hn::Set(d, interval.range);
  for (std::size_t i = 0; i < count; i += hn::Lanes(d)) {
    const auto f = hn::PromoteTo(d, unit_interval(floats, hn::Load(words, bits + i)));
    const auto scaled = add_to_odd(d, hn::Mul(f, range), low);  // the product of two floats is exact
    hn::StoreU(hn::Max(hn::Set(floats, interval.low), hn::DemoteTo(floats, scaled)), floats, out + i);
  }
}

HWY_INLINE void uniform_pass(Interval<double> interval, const std::uint64_t* HWY_RESTRICT bits, std::size_t count,
                             double* HWY_RESTRICT out) {
  if (rounds_once(interval)) return plain_uniform_pass(interval, bits, count, out);
  plain_uniform_pass({0.0, 1.0}, bits, count, out);
  // The C library rounds once too where the processor cannot.
  for (std::size_t i = 0; i < count; ++i) {
    out[i] = std::max(interval.low, std::fma(out[i], interval.range, interval.low));
  }
}

// function(d, vector) on every element in place.
template <class T, class Function>
HWY_INLINE void map_pass(T* HWY_RESTRICT values, std::size_t count, const Function& function) {
  const hn::ScalableTag<T> d;
  for (std::size_t i = 0; i < count; i += hn::Lanes(d))
    hn::StoreU(function(d, hn::LoadU(d, values + i)), d, values + i);
}

// (h * factor + l) % span, with h and l reduced first; factor is 2^32 % span. Product and sum wrap, as in JAX.
HWY_INLINE void randint_pass(const IntegerRange& range, const std::uint32_t* HWY_RESTRICT high,
                             const std::uint32_t* HWY_RESTRICT low, std::size_t count, std::int32_t* HWY_RESTRICT out) {
  const hn::ScalableTag<double> d;
  const hn::RebindToUnsigned<decltype(d)> integers;
  const hn::Rebind<std::uint32_t, decltype(d)> words;
  const hn::Rebind<std::int32_t, decltype(d)> results;
  std::uint32_t factor = 65536 % range.span;
  factor = factor * factor % range.span;
  const auto reduced = [&](auto x) HWY_ATTR {
    const auto rest = remainder(d, to_double(d, hn::PromoteTo(integers, x)), range.span);
    return hn::TruncateTo(words, to_integer(d, rest));
  };
  for (std::size_t i = 0; i < count; i += hn::Lanes(d)) {
    const auto h = reduced(hn::Load(words, high + i));
    const auto l = reduced(hn::Load(words, low + i));
    const auto offset = reduced(hn::Add(hn::Mul(h, hn::Set(words, factor)), l));
    hn::StoreU(hn::Add(hn::BitCast(results, offset), hn::Set(results, range.low)), results, out + i);
  }
}

}  // namespace brigade::random::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // include guard, toggled for every target
