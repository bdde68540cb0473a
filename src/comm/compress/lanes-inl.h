// Sums in one fixed order, for each instruction set (Highway): number i goes to lane i mod 16, and lanes are added as a tree.

#if defined(BRIGADE_COMM_COMPRESS_LANES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BRIGADE_COMM_COMPRESS_LANES_INL_H_
#undef BRIGADE_COMM_COMPRESS_LANES_INL_H_
#else
#define BRIGADE_COMM_COMPRESS_LANES_INL_H_
#endif

#include <hwy/highway.h>

#include <cstddef>

HWY_BEFORE_NAMESPACE();
namespace brigade::comm::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

constexpr std::size_t kSumLanes = 16;

// Lanes of T in memory, which is in the first-level cache all along.
template <class T>
class LaneSums {
 public:
  template <class D>
  HWY_INLINE void add(D d, std::size_t lane, hn::Vec<D> v) {
    hn::Store(hn::Add(hn::Load(d, lanes_ + lane), v), d, lanes_ + lane);
  }

  HWY_INLINE T sum() const {
    T sums[kSumLanes];
    for (std::size_t i = 0; i < kSumLanes; ++i) sums[i] = lanes_[i];
    for (std::size_t half = kSumLanes / 2; half > 0; half /= 2) {
      for (std::size_t i = 0; i < half; ++i) sums[i] = sums[2 * i] + sums[2 * i + 1];
    }
    return sums[0];
  }

 private:
  HWY_ALIGN T lanes_[kSumLanes] = {};
};
using SumLanes = LaneSums<double>;

// add(d, lane, x) with 16 numbers from `from` on, as vectors of double.
template <class Add>
HWY_INLINE void for_each_sum(const float* from, const Add& add) {
  const hn::CappedTag<double, kSumLanes> d;
  for (std::size_t lane = 0; lane < kSumLanes; lane += hn::Lanes(d)) {
    add(d, lane, hn::PromoteTo(d, hn::LoadU(hn::Rebind<float, decltype(d)>(), from + lane)));
  }
}

}  // namespace brigade::comm::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // include guard, toggled for every target
