#include "optim/sgd_kernel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "optim/sgd_kernel.cpp"
#include "hwy/foreach_target.h"  // compiles this file once for each instruction set
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace brigade::optim::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using kernels::SgdFactors;

// No MulAdd: it is one rounding on some instruction sets and two on others.
template <class D>
HWY_INLINE void update_lanes(D d, const SgdFactors& f, float* HWY_RESTRICT parameters,
                             const float* HWY_RESTRICT gradient, float* HWY_RESTRICT velocity) {
  const auto p = hn::LoadU(d, parameters);
  auto g = hn::LoadU(d, gradient);
  if (f.weight_decay != 0) g = hn::Add(g, hn::Mul(hn::Set(d, f.weight_decay), p));
  if (velocity != nullptr) {
    auto v = g;
    if (!f.first) {
      v = hn::Add(hn::Mul(hn::Set(d, f.momentum), hn::LoadU(d, velocity)), hn::Mul(hn::Set(d, f.gradient_share), g));
    }
    hn::StoreU(v, d, velocity);
    g = f.nesterov ? hn::Add(g, hn::Mul(hn::Set(d, f.momentum), v)) : v;
  }
  hn::StoreU(hn::Sub(p, hn::Mul(hn::Set(d, f.learning_rate), g)), d, parameters);
}

void sgd(const SgdFactors& factors, std::size_t count, float* parameters, const float* gradient, float* velocity) {
  const hn::ScalableTag<float> vectors;
  const hn::CappedTag<float, 1> one;
  const auto velocity_at = [velocity](std::size_t i) { return velocity == nullptr ? nullptr : velocity + i; };
  const std::size_t lanes = hn::Lanes(vectors);
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) update_lanes(vectors, factors, parameters + i, gradient + i, velocity_at(i));
  for (; i < count; ++i) update_lanes(one, factors, parameters + i, gradient + i, velocity_at(i));
}

}  // namespace brigade::optim::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace brigade::optim {
HWY_EXPORT(sgd);

void kernels::sgd(const SgdFactors& factors, std::size_t count, float* parameters, const float* gradient,
                  float* velocity) {
  HWY_DYNAMIC_DISPATCH(sgd)(factors, count, parameters, gradient, velocity);
}

}  // namespace brigade::optim
#endif  // HWY_ONCE
