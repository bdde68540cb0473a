// The running means of a gradient and of its square, which Adam, AdamW and LAMB keep, for each instruction set (Highway).

#if defined(BRIGADE_OPTIM_MOMENTS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BRIGADE_OPTIM_MOMENTS_INL_H_
#undef BRIGADE_OPTIM_MOMENTS_INL_H_
#else
#define BRIGADE_OPTIM_MOMENTS_INL_H_
#endif

#include <cstdint>

#include "optim/lanes-inl.h"
#include "optim/power.h"

HWY_BEFORE_NAMESPACE();
namespace brigade::optim::HWY_NAMESPACE {

template <class T>
struct Moments {
  Moments(double beta1, double beta2, std::int64_t index)
      : first_correction(1 - power(beta1, index + 1)),
        second_correction(1 - power(beta2, index + 1)),
        first_kept(static_cast<T>(beta1)),
        first_share(static_cast<T>(1 - beta1)),
        second_kept(static_cast<T>(beta2)),
        second_share(static_cast<T>(1 - beta2)),
        starts(index == 0) {}

  template <class D>
  HWY_INLINE hn::Vec<D> update_first(D d, hn::Vec<D> g, T* exp_avg) const {
    const auto before = load_state(d, exp_avg, starts, T{0});
    const auto m = hn::Add(hn::Mul(hn::Set(d, first_kept), before), hn::Mul(hn::Set(d, first_share), g));
    hn::StoreU(m, d, exp_avg);
    return m;
  }

  template <class D>
  HWY_INLINE hn::Vec<D> update_second(D d, hn::Vec<D> g, T* exp_avg_sq) const {
    const auto before = load_state(d, exp_avg_sq, starts, T{0});
    const auto square = hn::Mul(hn::Mul(hn::Set(d, second_share), g), g);
    const auto v = hn::Add(hn::Mul(hn::Set(d, second_kept), before), square);
    hn::StoreU(v, d, exp_avg_sq);
    return v;
  }

  double first_correction;  // the means of a constant are this share of it, as they start from 0
  double second_correction;
  T first_kept;
  T first_share;
  T second_kept;
  T second_share;
  bool starts;
};

}  // namespace brigade::optim::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
