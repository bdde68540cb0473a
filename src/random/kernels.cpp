#include "random/kernels.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "random/kernels.cpp"
#include "hwy/foreach_target.h"  // compiles this file once for each instruction set
#include "hwy/highway.h"
#include "random/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace brigade::random::HWY_NAMESPACE {

using kernels::IntegerRange;
using kernels::Interval;
using kernels::Normal;

// Elements go through buffers that stay in the first-level cache: bits first, then each function in a pass of its own.
// A pass always handles a whole number of kPad elements, which is a whole number of vectors on every target, so the
// last few elements take the same path as all others.
constexpr std::size_t kBlock = 1024;
constexpr std::size_t kPad = 64;
static_assert(kBlock % kPad == 0 && kPad % (HWY_MAX_BYTES / sizeof(std::uint32_t)) == 0);

// ---------------------------------------------------------------- passes

// The counters of a block share their upper half: draw() sees to it.
HWY_INLINE void bits_pass(ThreefryKey key, std::uint64_t first, std::size_t count, std::uint32_t* HWY_RESTRICT out) {
  const hn::ScalableTag<std::uint32_t> d;
  const auto high = hn::Set(d, static_cast<std::uint32_t>(first >> 32));
  const auto low = hn::Iota(d, static_cast<std::uint32_t>(first));
  for (std::size_t i = 0; i < count; i += hn::Lanes(d)) {
    auto x0 = high;
    auto x1 = hn::Add(low, hn::Set(d, static_cast<std::uint32_t>(i)));
    threefry(d, key, x0, x1);
    hn::StoreU(hn::Xor(x0, x1), d, out + i);
  }
}

HWY_INLINE void bits_pass(ThreefryKey key, std::uint64_t first, std::size_t count, std::uint64_t* HWY_RESTRICT out) {
  static_assert(std::endian::native == std::endian::little,
                "the second word of a block is the lower half of its 64 bits");
  const hn::ScalableTag<std::uint32_t> d;
  const auto high = hn::Set(d, static_cast<std::uint32_t>(first >> 32));
  const auto low = hn::Iota(d, static_cast<std::uint32_t>(first));
  for (std::size_t i = 0; i < count; i += hn::Lanes(d)) {
    auto x0 = high;
    auto x1 = hn::Add(low, hn::Set(d, static_cast<std::uint32_t>(i)));
    threefry(d, key, x0, x1);
    hn::StoreInterleaved2(x1, x0, d, reinterpret_cast<std::uint32_t*>(out + i));
  }
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

// ---------------------------------------------------------------- draws

// block(first, count, out) for each block of elements, `count` being a multiple of kPad.
template <class T, class Block>
HWY_INLINE void draw(std::uint64_t first, std::span<T> out, const Block& block) {
  HWY_ALIGN T scratch[kBlock];
  while (!out.empty()) {
    const std::uint64_t to_carry = (std::uint64_t{1} << 32) - (first & 0xFFFFFFFF);
    const std::size_t count = std::min({out.size(), kBlock, static_cast<std::size_t>(to_carry)});
    if (count % kPad == 0) {
      block(first, count, out.data());
    } else {
      block(first, (count / kPad + 1) * kPad, scratch);
      std::memcpy(out.data(), scratch, count * sizeof(T));
    }
    first += count;
    out = out.subspan(count);
  }
}

template <class T>
HWY_INLINE void whole_words(ThreefryKey key, std::uint64_t first, std::span<T> out) {
  draw(first, out, [&](std::uint64_t at, std::size_t count, T* to) HWY_ATTR { bits_pass(key, at, count, to); });
}

template <class T, class Convert>
HWY_INLINE void from_words(ThreefryKey key, std::uint64_t first, std::span<T> out, const Convert& convert) {
  draw(first, out, [&](std::uint64_t at, std::size_t count, T* to) HWY_ATTR {
    HWY_ALIGN std::uint32_t words[kBlock];
    bits_pass(key, at, count, words);
    for (std::size_t i = 0; i < count; ++i) to[i] = convert(words[i]);
  });
}

// Uniforms through `function`.
template <class T, class Function>
HWY_INLINE void from_uniform(ThreefryKey key, std::uint64_t first, Interval<T> interval, std::span<T> out,
                             const Function& function) {
  using Word = hwy::MakeUnsigned<T>;
  draw(first, out, [&](std::uint64_t at, std::size_t count, T* to) HWY_ATTR {
    HWY_ALIGN Word words[kBlock];
    bits_pass(key, at, count, words);
    uniform_pass(interval, words, count, to);
    function(to, count);
  });
}

template <class T>
HWY_INLINE void uniform_of(ThreefryKey key, std::uint64_t first, Interval<T> interval, std::span<T> out) {
  from_uniform(key, first, interval, out, [](T*, std::size_t) HWY_ATTR {});
}

template <class T>
HWY_INLINE void normal_of(ThreefryKey key, std::uint64_t first, const Normal<T>& normal, std::span<T> out) {
  constexpr T kSqrt2 = static_cast<T>(1.41421356237309504880);
  from_uniform(key, first, normal.argument, out, [&](T* values, std::size_t count) HWY_ATTR {
    map_pass(values, count, [&](auto d, auto u) HWY_ATTR {
      const auto x = hn::Mul(hn::Set(d, kSqrt2), erfinv(d, u));
      return hn::Min(hn::Max(x, hn::Set(d, normal.low)), hn::Set(d, normal.high));
    });
  });
}

template <class T>
HWY_INLINE void exponential_of(ThreefryKey key, std::uint64_t first, std::span<T> out) {
  from_uniform(key, first, Interval<T>{0, 1}, out, [](T* values, std::size_t count) HWY_ATTR {
    // 1 - u is exact, so the logarithm loses nothing that log1p would keep.
    map_pass(values, count,
             [](auto d, auto u) HWY_ATTR { return hn::Sub(hn::Zero(d), log(d, hn::Sub(hn::Set(d, 1), u))); });
  });
}

template <class T>
HWY_INLINE void gumbel_of(ThreefryKey key, std::uint64_t first, std::span<T> out) {
  constexpr T kTiny = std::numeric_limits<T>::min();
  from_uniform(key, first, Interval<T>{kTiny, T{1} - kTiny}, out, [](T* values, std::size_t count) HWY_ATTR {
    map_pass(values, count, [](auto d, auto u) HWY_ATTR { return hn::Neg(log(d, hn::Neg(log(d, u)))); });
  });
}

// ---------------------------------------------------------------- what is dispatched

void Bits8(ThreefryKey key, std::uint64_t first, std::span<std::uint8_t> out) {
  from_words(key, first, out, [](std::uint32_t word) HWY_ATTR { return static_cast<std::uint8_t>(word); });
}
void Bits16(ThreefryKey key, std::uint64_t first, std::span<std::uint16_t> out) {
  from_words(key, first, out, [](std::uint32_t word) HWY_ATTR { return static_cast<std::uint16_t>(word); });
}
void Bits32(ThreefryKey key, std::uint64_t first, std::span<std::uint32_t> out) { whole_words(key, first, out); }
void Bits64(ThreefryKey key, std::uint64_t first, std::span<std::uint64_t> out) { whole_words(key, first, out); }

void Uniform32(ThreefryKey key, std::uint64_t first, Interval<float> interval, std::span<float> out) {
  uniform_of(key, first, interval, out);
}
void Uniform64(ThreefryKey key, std::uint64_t first, Interval<double> interval, std::span<double> out) {
  uniform_of(key, first, interval, out);
}
void Normal32(ThreefryKey key, std::uint64_t first, const Normal<float>& normal, std::span<float> out) {
  normal_of(key, first, normal, out);
}
void Normal64(ThreefryKey key, std::uint64_t first, const Normal<double>& normal, std::span<double> out) {
  normal_of(key, first, normal, out);
}
void Exponential32(ThreefryKey key, std::uint64_t first, std::span<float> out) { exponential_of(key, first, out); }
void Exponential64(ThreefryKey key, std::uint64_t first, std::span<double> out) { exponential_of(key, first, out); }
void Gumbel32(ThreefryKey key, std::uint64_t first, std::span<float> out) { gumbel_of(key, first, out); }
void Gumbel64(ThreefryKey key, std::uint64_t first, std::span<double> out) { gumbel_of(key, first, out); }

void Bernoulli(ThreefryKey key, std::uint64_t first, std::uint32_t threshold, std::span<bool> out) {
  from_words(key, first, out, [threshold](std::uint32_t word) HWY_ATTR { return (word >> 9) < threshold; });
}

void RandInt(std::uint64_t first, const IntegerRange& range, std::span<std::int32_t> out) {
  draw(first, out, [&](std::uint64_t at, std::size_t count, std::int32_t* to) HWY_ATTR {
    HWY_ALIGN std::uint32_t high[kBlock];
    HWY_ALIGN std::uint32_t low[kBlock];
    bits_pass(range.low_key, at, count, low);
    if (range.span == 0) {  // all 2^32 values: the lower bits are the offset
      for (std::size_t i = 0; i < count; ++i) {
        to[i] = static_cast<std::int32_t>(low[i] + static_cast<std::uint32_t>(range.low));
      }
      return;
    }
    bits_pass(range.high_key, at, count, high);
    randint_pass(range, high, low, count, to);
  });
}

}  // namespace brigade::random::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace brigade::random {

HWY_EXPORT(Bits8);
HWY_EXPORT(Bits16);
HWY_EXPORT(Bits32);
HWY_EXPORT(Bits64);
HWY_EXPORT(Uniform32);
HWY_EXPORT(Uniform64);
HWY_EXPORT(Normal32);
HWY_EXPORT(Normal64);
HWY_EXPORT(Exponential32);
HWY_EXPORT(Exponential64);
HWY_EXPORT(Gumbel32);
HWY_EXPORT(Gumbel64);
HWY_EXPORT(Bernoulli);
HWY_EXPORT(RandInt);

namespace kernels {

void bits(ThreefryKey key, std::uint64_t first, std::span<std::uint8_t> out) {
  HWY_DYNAMIC_DISPATCH(Bits8)(key, first, out);
}
void bits(ThreefryKey key, std::uint64_t first, std::span<std::uint16_t> out) {
  HWY_DYNAMIC_DISPATCH(Bits16)(key, first, out);
}
void bits(ThreefryKey key, std::uint64_t first, std::span<std::uint32_t> out) {
  HWY_DYNAMIC_DISPATCH(Bits32)(key, first, out);
}
void bits(ThreefryKey key, std::uint64_t first, std::span<std::uint64_t> out) {
  HWY_DYNAMIC_DISPATCH(Bits64)(key, first, out);
}
void uniform(ThreefryKey key, std::uint64_t first, Interval<float> interval, std::span<float> out) {
  HWY_DYNAMIC_DISPATCH(Uniform32)(key, first, interval, out);
}
void uniform(ThreefryKey key, std::uint64_t first, Interval<double> interval, std::span<double> out) {
  HWY_DYNAMIC_DISPATCH(Uniform64)(key, first, interval, out);
}
void normal(ThreefryKey key, std::uint64_t first, const Normal<float>& normal, std::span<float> out) {
  HWY_DYNAMIC_DISPATCH(Normal32)(key, first, normal, out);
}
void normal(ThreefryKey key, std::uint64_t first, const Normal<double>& normal, std::span<double> out) {
  HWY_DYNAMIC_DISPATCH(Normal64)(key, first, normal, out);
}
void exponential(ThreefryKey key, std::uint64_t first, std::span<float> out) {
  HWY_DYNAMIC_DISPATCH(Exponential32)(key, first, out);
}
void exponential(ThreefryKey key, std::uint64_t first, std::span<double> out) {
  HWY_DYNAMIC_DISPATCH(Exponential64)(key, first, out);
}
void gumbel(ThreefryKey key, std::uint64_t first, std::span<float> out) {
  HWY_DYNAMIC_DISPATCH(Gumbel32)(key, first, out);
}
void gumbel(ThreefryKey key, std::uint64_t first, std::span<double> out) {
  HWY_DYNAMIC_DISPATCH(Gumbel64)(key, first, out);
}
void bernoulli(ThreefryKey key, std::uint64_t first, std::uint32_t threshold, std::span<bool> out) {
  HWY_DYNAMIC_DISPATCH(Bernoulli)(key, first, threshold, out);
}
void randint(std::uint64_t first, const IntegerRange& range, std::span<std::int32_t> out) {
  HWY_DYNAMIC_DISPATCH(RandInt)(first, range, out);
}

}  // namespace kernels
}  // namespace brigade::random
#endif  // HWY_ONCE
