#include "brigade/comm/compress/distortion.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "comm/compress/distortion.cpp"
#include <hwy/foreach_target.h>  // compiles this file once for each instruction set
#include <hwy/highway.h>

#include <cstring>

#include "comm/compress/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace brigade::comm::HWY_NAMESPACE {

// Of 16 numbers.
HWY_INLINE void add_squares(const float* sent, const float* received, SumLanes& norm, SumLanes& error) {
  const hn::CappedTag<double, kSumLanes> d;
  const hn::Rebind<float, decltype(d)> df;
  for (std::size_t lane = 0; lane < kSumLanes; lane += hn::Lanes(d)) {
    const auto x = hn::PromoteTo(d, hn::LoadU(df, sent + lane));
    const auto lost = hn::Sub(x, hn::PromoteTo(d, hn::LoadU(df, received + lane)));
    norm.add(d, lane, hn::Mul(x, x));
    error.add(d, lane, hn::Mul(lost, lost));
  }
}

Distortion squares(std::span<const float> sent, std::span<const float> received) {
  SumLanes norm;
  SumLanes error;
  std::size_t at = 0;
  for (; at + kSumLanes <= sent.size(); at += kSumLanes) {
    add_squares(sent.data() + at, received.data() + at, norm, error);
  }
  if (at < sent.size()) {
    HWY_ALIGN float last[2][kSumLanes] = {};
    std::memcpy(last[0], sent.data() + at, (sent.size() - at) * sizeof(float));
    std::memcpy(last[1], received.data() + at, (sent.size() - at) * sizeof(float));
    add_squares(last[0], last[1], norm, error);
  }
  return {.squared_norm = norm.sum(), .squared_error = error.sum()};
}

}  // namespace brigade::comm::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <fmt/format.h>

#include "brigade/base/error.h"

namespace brigade::comm {
HWY_EXPORT(squares);

Distortion distortion(std::span<const float> sent, std::span<const float> received) {
  if (sent.size() != received.size()) {
    throw ShapeError(fmt::format("distortion: {} numbers were sent and {} received", sent.size(), received.size()));
  }
  return HWY_DYNAMIC_DISPATCH(squares)(sent, received);
}

}  // namespace brigade::comm
#endif  // HWY_ONCE
