// Vector kernels of room random: contiguous elements [first, first + out.size()) of a draw.
//
// Free of torch. Each picks the widest vectors of this processor at its first call and gives the same bits on all: see
// lanes-inl.h for how. Parameters are checked by the caller.
#pragma once

#include <cstdint>
#include <span>

#include "brigade/base/threefry.h"

namespace brigade::random::kernels {

// The values low + f * range for f = 0, 2^-23, ..., 1 - 2^-23 (2^-52 for double), rounded once and at least `low`.
template <class T>
struct Interval {
  T low;
  T range;
};

// sqrt(2) * erfinv(uniform), with uniform drawn from `argument` and the result kept within [low, high].
template <class T>
struct Normal {
  Interval<T> argument;
  T low;
  T high;
};

// low + (h * 2^32 + l) % span for 32 bits each h and l of the keys `high_key` and `low_key`, wrapping as in
// jax.random.randint; span 0 stands for 2^32.
struct IntegerRange {
  ThreefryKey high_key;
  ThreefryKey low_key;
  std::int32_t low;
  std::uint32_t span;
};

void bits(ThreefryKey key, std::uint64_t first, std::span<std::uint8_t> out);
void bits(ThreefryKey key, std::uint64_t first, std::span<std::uint16_t> out);
void bits(ThreefryKey key, std::uint64_t first, std::span<std::uint32_t> out);
void bits(ThreefryKey key, std::uint64_t first, std::span<std::uint64_t> out);

void uniform(ThreefryKey key, std::uint64_t first, Interval<float> interval, std::span<float> out);
void uniform(ThreefryKey key, std::uint64_t first, Interval<double> interval, std::span<double> out);

void normal(ThreefryKey key, std::uint64_t first, const Normal<float>& normal, std::span<float> out);
void normal(ThreefryKey key, std::uint64_t first, const Normal<double>& normal, std::span<double> out);

void exponential(ThreefryKey key, std::uint64_t first, std::span<float> out);
void exponential(ThreefryKey key, std::uint64_t first, std::span<double> out);

void gumbel(ThreefryKey key, std::uint64_t first, std::span<float> out);
void gumbel(ThreefryKey key, std::uint64_t first, std::span<double> out);

// True where the element's upper 23 bits are below `threshold`, which is at most 2^23.
void bernoulli(ThreefryKey key, std::uint64_t first, std::uint32_t threshold, std::span<bool> out);

void randint(std::uint64_t first, const IntegerRange& range, std::span<std::int32_t> out);

}  // namespace brigade::random::kernels
