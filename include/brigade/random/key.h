// Keys of the random number generator: what a draw depends on, besides the position of the element.
//
// A key is a value. Nothing is kept between draws, so the same key gives the same numbers on any device, in any thread
// and after a restart, and a key must not be used twice: split it.
//
//   auto [k1, k2] = random::split<2>(random::key(0));
//   auto w = random::normal(k1, {784, 128});
//   auto step_key = random::fold_in(k2, step);
//
// Numbers are those of JAX with threefry2x32 keys and jax_threefry_partitionable (its default since 0.5).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "brigade/base/threefry.h"
#include "brigade/tree/traits.h"

namespace brigade::random {

// 64 bits, trivially copyable; capture it in a device's function like any number.
struct Key {
  std::uint32_t k0 = 0;
  std::uint32_t k1 = 0;

  constexpr operator ThreefryKey() const noexcept { return {k0, k1}; }
  friend constexpr bool operator==(const Key&, const Key&) = default;
};

// The key {0, low 32 bits of `seed`}, as in JAX: seeds that differ by a multiple of 2^32 give one key. -1 gives
// {0, 0xFFFFFFFF}.
constexpr Key key(std::int64_t seed) noexcept { return {0, static_cast<std::uint32_t>(seed)}; }

// `i`-th of the keys that `split` gives; it does not depend on how many there are.
constexpr Key split_at(Key key, std::uint64_t i) noexcept {
  const auto block = threefry2x32(ThreefryKey(key), i);
  return {block[0], block[1]};
}

// N independent keys. `key` itself is used up.
template <std::size_t N = 2>
constexpr std::array<Key, N> split(Key key) noexcept {
  std::array<Key, N> keys;
  for (std::size_t i = 0; i < N; ++i) keys[i] = split_at(key, i);
  return keys;
}

// The same for a number known at run time. Throws InvalidArgument when `n` is negative.
std::vector<Key> split(Key key, std::int64_t n);

// A key for item number `data` (a step, a layer, a device) of `key`; unlike split it leaves no list to carry along.
// Throws InvalidArgument unless 0 <= data < 2^32.
Key fold_in(Key key, std::int64_t data);

}  // namespace brigade::random

// A key in a tree is one value, not two numbers to map over.
template <>
inline constexpr bool brigade::tree::is_static<brigade::random::Key> = true;
