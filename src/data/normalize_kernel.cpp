#include "data/normalize_kernel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "data/normalize_kernel.cpp"
#include "hwy/foreach_target.h"  // compiles this file once for each instruction set
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace brigade::data::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// No MulAdd: it is one rounding on some instruction sets and two on others.
template <class D>
HWY_INLINE void scale_lanes(D d, const std::uint8_t* HWY_RESTRICT bytes, float scale, float shift,
                            float* HWY_RESTRICT values) {
  const hn::Rebind<std::int32_t, D> integers;
  const hn::Rebind<std::uint8_t, D> narrow;
  const auto wide = hn::ConvertTo(d, hn::PromoteTo(integers, hn::LoadU(narrow, bytes)));
  hn::StoreU(hn::Add(hn::Mul(wide, hn::Set(d, scale)), hn::Set(d, shift)), d, values);
}

void scale_bytes(const std::uint8_t* bytes, std::size_t count, float scale, float shift, float* values) {
  const hn::ScalableTag<float> vectors;
  const hn::CappedTag<float, 1> one;
  const std::size_t lanes = hn::Lanes(vectors);
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) scale_lanes(vectors, bytes + i, scale, shift, values + i);
  for (; i < count; ++i) scale_lanes(one, bytes + i, scale, shift, values + i);
}

}  // namespace brigade::data::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace brigade::data {
HWY_EXPORT(scale_bytes);

void kernels::scale_bytes(const std::uint8_t* bytes, std::size_t count, float scale, float shift, float* values) {
  HWY_DYNAMIC_DISPATCH(scale_bytes)(bytes, count, scale, shift, values);
}

}  // namespace brigade::data
#endif  // HWY_ONCE
