// What the vector loops of update rules share, for each instruction set (Highway).
//
// All of them give the same bits, because lanes never mix and every lane does the same IEEE operations in the same order:
// no MulAdd, which is one rounding on some instruction sets and two on others, and no Min and Max, which differ on NaN.

#if defined(BRIGADE_OPTIM_LANES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BRIGADE_OPTIM_LANES_INL_H_
#undef BRIGADE_OPTIM_LANES_INL_H_
#else
#define BRIGADE_OPTIM_LANES_INL_H_
#endif

#include <hwy/highway.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "brigade/base/quotient.h"
#include "brigade/optim/step.h"

HWY_BEFORE_NAMESPACE();
namespace brigade::optim::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Calls body(d, read, written) with the places of one vector after the other. The last elements fill vectors of their own
// with zeros, so that the same code sees them.
template <class T, std::size_t kRead, std::size_t kWritten, class Body>
HWY_INLINE void for_each_vector(std::size_t count, const std::array<const T*, kRead>& read,
                                const std::array<T*, kWritten>& written, const Body& body) {
  const hn::ScalableTag<T> d;
  const std::size_t lanes = hn::Lanes(d);
  std::array<const T*, kRead> from = read;
  std::array<T*, kWritten> to = written;
  std::size_t at = 0;
  for (; at + lanes <= count; at += lanes) {
    body(d, from, to);
    for (const T*& place : from) place += lanes;
    for (T*& place : to) place += lanes;
  }
  if (at == count) return;
  HWY_ALIGN T padded[kRead + kWritten][hn::MaxLanes(d)] = {};
  const std::size_t bytes = (count - at) * sizeof(T);
  for (std::size_t i = 0; i < kRead; ++i) {
    std::memcpy(padded[i], from[i], bytes);
    from[i] = padded[i];
  }
  for (std::size_t i = 0; i < kWritten; ++i) {
    std::memcpy(padded[kRead + i], to[i], bytes);
    to[i] = padded[kRead + i];
  }
  body(d, from, to);
  for (std::size_t i = 0; i < kWritten; ++i) std::memcpy(written[i] + at, to[i], bytes);
}

// The same for a rule that reads the gradient and writes parameters and `kStates` buffers of state.
template <std::size_t kStates, class T, class Body>
void update_vectors(const Slice<T>& slice, const Body& body) {
  std::array<T*, 1 + kStates> written = {slice.parameters.data()};
  for (std::size_t i = 0; i < kStates; ++i) written[1 + i] = slice.state[i].data();
  for_each_vector(slice.parameters.size(), std::array<const T*, 1>{slice.gradient.data()}, written, body);
}

// What a rule takes a buffer of state for: at step 0 its initial value, and nothing is read.
template <class D, class T = hn::TFromD<D>>
HWY_INLINE hn::Vec<D> load_state(D d, const T* state, bool first, T initial_value) {
  return first ? hn::Set(d, initial_value) : hn::LoadU(d, state);
}

// Prepares the gradient as step.h says.
template <class T>
class Preparation {
 public:
  explicit Preparation(const Step& step)
      : divisor_(step.divisor),
        factor_(static_cast<T>(step.clip_factor)),
        limit_(static_cast<T>(step.clip_value)),
        changes_(step.divisor != 1 || step.clip_factor != 1 ||
                 step.clip_value != std::numeric_limits<double>::infinity()),
        divides_on_vectors_(static_cast<double>(static_cast<T>(step.divisor)) == step.divisor) {}

  template <class D>
  HWY_INLINE hn::Vec<D> operator()(D d, const T* gradient) const {
    const auto g = hn::LoadU(d, gradient);
    return changes_ ? clipped(d, divided(d, g)) : g;
  }

  template <class D>
  HWY_INLINE hn::Vec<D> divided(D d, hn::Vec<D> g) const {
    if constexpr (std::is_same_v<T, float>) {
      if (!divides_on_vectors_) return divided_in_double(d, g);
    }
    return hn::Div(g, hn::Set(d, static_cast<T>(divisor_)));
  }

  template <class D>
  HWY_INLINE hn::Vec<D> clipped(D d, hn::Vec<D> g) const {
    const auto high = hn::Set(d, limit_);
    const auto low = hn::Neg(high);
    const auto scaled = hn::Mul(g, hn::Set(d, factor_));
    const auto below = hn::IfThenElse(hn::Gt(scaled, high), high, scaled);
    return hn::IfThenElse(hn::Lt(below, low), low, below);
  }

 private:
  // By a divisor that float32 does not hold. Rounding the quotient of doubles again goes wrong only where it is the middle
  // of two float32, or below their normal range; there it is taken one number at a time.
  template <class D>
  HWY_NOINLINE hn::Vec<D> divided_in_double(D d, hn::VecArg<hn::Vec<D>> g) const {
    const hn::ScalableTag<double> wide;
    const hn::Rebind<float, decltype(wide)> narrow;
    const hn::RebindToUnsigned<decltype(wide)> bits;
    HWY_ALIGN float lanes[HWY_MAX(hn::MaxLanes(d), hn::MaxLanes(wide))] = {};
    hn::Store(g, d, lanes);
    for (std::size_t at = 0; at < hn::Lanes(d); at += hn::Lanes(wide)) {
      const auto quotient = hn::Div(hn::PromoteTo(wide, hn::Load(narrow, lanes + at)), hn::Set(wide, divisor_));
      const auto dropped = hn::And(hn::BitCast(bits, quotient), hn::Set(bits, (std::uint64_t{1} << 29) - 1));
      const auto is_middle = hn::RebindMask(wide, hn::Eq(dropped, hn::Set(bits, std::uint64_t{1} << 28)));
      const auto is_small =
          hn::And(hn::Lt(hn::Abs(quotient), hn::Set(wide, 0x1p-126)), hn::Ne(quotient, hn::Zero(wide)));
      if (hn::AllFalse(wide, hn::Or(is_middle, is_small))) {
        hn::Store(hn::DemoteTo(narrow, quotient), narrow, lanes + at);
      } else {
        for (std::size_t i = at; i < at + hn::Lanes(wide); ++i) lanes[i] = float_quotient(lanes[i], divisor_);
      }
    }
    return hn::Load(d, lanes);
  }

  double divisor_;
  T factor_;
  T limit_;
  bool changes_;
  bool divides_on_vectors_;
};

}  // namespace brigade::optim::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
