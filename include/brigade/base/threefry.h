// The threefry2x32 block: 20 rounds, a bijection of 64 bits chosen by a key of 64 bits.
//
// J. Salmon, M. Moraes, R. Dror, D. Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC'11. The constants are those
// of the paper and of JAX. threefry-inl.h has the same on vectors.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

namespace brigade {

struct ThreefryKey {
  std::uint32_t k0 = 0;
  std::uint32_t k1 = 0;
};

inline constexpr std::uint32_t kThreefryParity = 0x1BD11BDA;
inline constexpr std::array<std::array<int, 4>, 2> kThreefryRotations = {{{13, 15, 26, 6}, {17, 29, 16, 24}}};

constexpr std::array<std::uint32_t, 2> threefry2x32(ThreefryKey key, std::uint32_t x0, std::uint32_t x1) {
  const std::array<std::uint32_t, 3> schedule = {key.k0, key.k1, key.k0 ^ key.k1 ^ kThreefryParity};
  x0 += schedule[0];
  x1 += schedule[1];
  for (std::uint32_t i = 0; i < 5; ++i) {
    for (const int rotation : kThreefryRotations[i % 2]) {
      x0 += x1;
      x1 = std::rotl(x1, rotation) ^ x0;
    }
    x0 += schedule[(i + 1) % 3];
    x1 += schedule[(i + 2) % 3] + i + 1;
  }
  return {x0, x1};
}

// Block for a 64-bit counter, as drawn for element `counter`.
constexpr std::array<std::uint32_t, 2> threefry2x32(ThreefryKey key, std::uint64_t counter) {
  return threefry2x32(key, static_cast<std::uint32_t>(counter >> 32), static_cast<std::uint32_t>(counter));
}

}  // namespace brigade
