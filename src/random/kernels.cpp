#include "random/kernels.h"

#include <algorithm>
#include <cstring>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "random/kernels.cpp"
#include "hwy/foreach_target.h"  // compiles this file once for each instruction set
#include "hwy/highway.h"
#include "random/lanes-inl.h"
#include "random/passes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace brigade::random::HWY_NAMESPACE {

using kernels::Normal;

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

void bits8(ThreefryKey key, std::uint64_t first, std::span<std::uint8_t> out) {
  from_words(key, first, out, [](std::uint32_t word) HWY_ATTR { return static_cast<std::uint8_t>(word); });
}
void bits16(ThreefryKey key, std::uint64_t first, std::span<std::uint16_t> out) {
  from_words(key, first, out, [](std::uint32_t word) HWY_ATTR { return static_cast<std::uint16_t>(word); });
}
void bits32(ThreefryKey key, std::uint64_t first, std::span<std::uint32_t> out) { whole_words(key, first, out); }
void bits64(ThreefryKey key, std::uint64_t first, std::span<std::uint64_t> out) { whole_words(key, first, out); }

void uniform32(ThreefryKey key, std::uint64_t first, Interval<float> interval, std::span<float> out) {
  uniform_of(key, first, interval, out);
}
void uniform64(ThreefryKey key, std::uint64_t first, Interval<double> interval, std::span<double> out) {
  uniform_of(key, first, interval, out);
}
void normal32(ThreefryKey key, std::uint64_t first, const Normal<float>& normal, std::span<float> out) {
  normal_of(key, first, normal, out);
}
void normal64(ThreefryKey key, std::uint64_t first, const Normal<double>& normal, std::span<double> out) {
  normal_of(key, first, normal, out);
}
void exponential32(ThreefryKey key, std::uint64_t first, std::span<float> out) { exponential_of(key, first, out); }
void exponential64(ThreefryKey key, std::uint64_t first, std::span<double> out) { exponential_of(key, first, out); }
void gumbel32(ThreefryKey key, std::uint64_t first, std::span<float> out) { gumbel_of(key, first, out); }
void gumbel64(ThreefryKey key, std::uint64_t first, std::span<double> out) { gumbel_of(key, first, out); }

void bernoulli(ThreefryKey key, std::uint64_t first, std::uint32_t threshold, std::span<bool> out) {
  from_words(key, first, out, [threshold](std::uint32_t word) HWY_ATTR { return (word >> 9) < threshold; });
}

void randint(std::uint64_t first, const IntegerRange& range, std::span<std::int32_t> out) {
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

HWY_EXPORT(bits8);
HWY_EXPORT(bits16);
HWY_EXPORT(bits32);
HWY_EXPORT(bits64);
HWY_EXPORT(uniform32);
HWY_EXPORT(uniform64);
HWY_EXPORT(normal32);
HWY_EXPORT(normal64);
HWY_EXPORT(exponential32);
HWY_EXPORT(exponential64);
HWY_EXPORT(gumbel32);
HWY_EXPORT(gumbel64);
HWY_EXPORT(bernoulli);
HWY_EXPORT(randint);

namespace kernels {

void bits(ThreefryKey key, std::uint64_t first, std::span<std::uint8_t> out) {
  HWY_DYNAMIC_DISPATCH(bits8)(key, first, out);
}
void bits(ThreefryKey key, std::uint64_t first, std::span<std::uint16_t> out) {
  HWY_DYNAMIC_DISPATCH(bits16)(key, first, out);
}
void bits(ThreefryKey key, std::uint64_t first, std::span<std::uint32_t> out) {
  HWY_DYNAMIC_DISPATCH(bits32)(key, first, out);
}
void bits(ThreefryKey key, std::uint64_t first, std::span<std::uint64_t> out) {
  HWY_DYNAMIC_DISPATCH(bits64)(key, first, out);
}
void uniform(ThreefryKey key, std::uint64_t first, Interval<float> interval, std::span<float> out) {
  HWY_DYNAMIC_DISPATCH(uniform32)(key, first, interval, out);
}
void uniform(ThreefryKey key, std::uint64_t first, Interval<double> interval, std::span<double> out) {
  HWY_DYNAMIC_DISPATCH(uniform64)(key, first, interval, out);
}
void normal(ThreefryKey key, std::uint64_t first, const Normal<float>& normal, std::span<float> out) {
  HWY_DYNAMIC_DISPATCH(normal32)(key, first, normal, out);
}
void normal(ThreefryKey key, std::uint64_t first, const Normal<double>& normal, std::span<double> out) {
  HWY_DYNAMIC_DISPATCH(normal64)(key, first, normal, out);
}
void exponential(ThreefryKey key, std::uint64_t first, std::span<float> out) {
  HWY_DYNAMIC_DISPATCH(exponential32)(key, first, out);
}
void exponential(ThreefryKey key, std::uint64_t first, std::span<double> out) {
  HWY_DYNAMIC_DISPATCH(exponential64)(key, first, out);
}
void gumbel(ThreefryKey key, std::uint64_t first, std::span<float> out) {
  HWY_DYNAMIC_DISPATCH(gumbel32)(key, first, out);
}
void gumbel(ThreefryKey key, std::uint64_t first, std::span<double> out) {
  HWY_DYNAMIC_DISPATCH(gumbel64)(key, first, out);
}
void bernoulli(ThreefryKey key, std::uint64_t first, std::uint32_t threshold, std::span<bool> out) {
  HWY_DYNAMIC_DISPATCH(bernoulli)(key, first, threshold, out);
}
void randint(std::uint64_t first, const IntegerRange& range, std::span<std::int32_t> out) {
  HWY_DYNAMIC_DISPATCH(randint)(first, range, out);
}

}  // namespace kernels
}  // namespace brigade::random
#endif  // HWY_ONCE
