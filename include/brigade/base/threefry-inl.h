// The block of threefry.h on vectors of counters, for each instruction set (Highway). For kernels of Brigade's own rooms, which
// are compiled with Highway; programs do not need it.
//
// All targets give the same bits: lanes never mix, and integers add, rotate and xor alike everywhere.

#if defined(BRIGADE_BASE_THREEFRY_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BRIGADE_BASE_THREEFRY_INL_H_
#undef BRIGADE_BASE_THREEFRY_INL_H_
#else
#define BRIGADE_BASE_THREEFRY_INL_H_
#endif

#include <hwy/highway.h>

#include <array>
#include <cstddef>
#include <cstdint>

#include "brigade/base/threefry.h"

HWY_BEFORE_NAMESPACE();
namespace brigade::HWY_NAMESPACE {

template <std::uint32_t kGroup, std::size_t kRound, class V>
HWY_INLINE void threefry_round(V& x0, V& x1) {
  namespace hn = hwy::HWY_NAMESPACE;
  x0 = hn::Add(x0, x1);
  x1 = hn::Xor(hn::RotateRight<32 - kThreefryRotations[kGroup % 2][kRound]>(x1), x0);
}

template <std::uint32_t kGroup, class D, class V>
HWY_INLINE void threefry_group(D d, const std::array<std::uint32_t, 3>& schedule, V& x0, V& x1) {
  namespace hn = hwy::HWY_NAMESPACE;
  threefry_round<kGroup, 0>(x0, x1);
  threefry_round<kGroup, 1>(x0, x1);
  threefry_round<kGroup, 2>(x0, x1);
  threefry_round<kGroup, 3>(x0, x1);
  x0 = hn::Add(x0, hn::Set(d, schedule[(kGroup + 1) % 3]));
  x1 = hn::Add(x1, hn::Set(d, schedule[(kGroup + 2) % 3] + kGroup + 1));
}

// The blocks for the counters in (x0, x1), in place.
template <class D, class V>
HWY_INLINE void threefry(D d, ThreefryKey key, V& x0, V& x1) {
  namespace hn = hwy::HWY_NAMESPACE;
  const std::array<std::uint32_t, 3> schedule = {key.k0, key.k1, key.k0 ^ key.k1 ^ kThreefryParity};
  x0 = hn::Add(x0, hn::Set(d, schedule[0]));
  x1 = hn::Add(x1, hn::Set(d, schedule[1]));
  threefry_group<0>(d, schedule, x0, x1);
  threefry_group<1>(d, schedule, x0, x1);
  threefry_group<2>(d, schedule, x0, x1);
  threefry_group<3>(d, schedule, x0, x1);
  threefry_group<4>(d, schedule, x0, x1);
}

}  // namespace brigade::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // include guard, toggled for every target
