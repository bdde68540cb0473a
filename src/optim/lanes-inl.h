// What the vector loops of update rules share, for each instruction set (Highway).
//
// All of them give the same bits, because lanes never mix and every lane does the same IEEE operations in the same order:
// no Min and Max, which differ on NaN, and no MulAdd, which is one rounding on some instruction sets and two on others, but
// in fused(), which makes it one on all.

#if defined(BRIGADE_OPTIM_LANES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BRIGADE_OPTIM_LANES_INL_H_
#undef BRIGADE_OPTIM_LANES_INL_H_
#else
#define BRIGADE_OPTIM_LANES_INL_H_
#endif

#include <hwy/highway.h>

#include <array>
#include <cmath>
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
// with zeros, so that the same code sees them. The body is a copy: what it holds could otherwise have changed with every
// store.
template <class T, std::size_t kRead, std::size_t kWritten, class Body>
HWY_INLINE void for_each_vector(std::size_t count, const std::array<const T*, kRead>& read,
                                const std::array<T*, kWritten>& written, Body body) {
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

// What a rule takes a buffer of state for: at step 0 its initial value, and nothing is read.
template <class D, class T = hn::TFromD<D>>
HWY_INLINE hn::Vec<D> load_state(D d, const T* state, bool first, T initial_value) {
  return first ? hn::Set(d, initial_value) : hn::LoadU(d, state);
}

#if HWY_TARGET != HWY_SCALAR
// A vector of float32 as two of float64, and back with one rounding.
template <class D>
using Wide = hn::Rebind<double, hn::Half<D>>;
template <class D>
HWY_INLINE hn::Vec<Wide<D>> lower_in_double(D, hn::Vec<D> v) {
  return hn::PromoteTo(Wide<D>(), hn::LowerHalf(hn::Half<D>(), v));
}
template <class D>
HWY_INLINE hn::Vec<Wide<D>> upper_in_double(D, hn::Vec<D> v) {
  return hn::PromoteTo(Wide<D>(), hn::UpperHalf(hn::Half<D>(), v));
}
template <class D>
HWY_INLINE hn::Vec<D> in_float(D d, hn::Vec<Wide<D>> lower, hn::Vec<Wide<D>> upper) {
  return hn::Combine(d, hn::DemoteTo(hn::Half<D>(), upper), hn::DemoteTo(hn::Half<D>(), lower));
}
#endif

#if !HWY_NATIVE_FMA && HWY_TARGET != HWY_SCALAR
// a + b in float64, rounded to odd (brigade/base/quotient.h says what for). What rounding took from the sum is known
// exactly (D. Knuth's TwoSum), and for an infinity it is NaN, which lies on neither side of 0.
template <class D>
HWY_INLINE hn::Vec<D> sum_rounded_to_odd(D d, hn::Vec<D> a, hn::Vec<D> b) {
  const hn::RebindToUnsigned<D> integers;
  const auto zero = hn::Zero(d);
  const auto one = hn::Set(integers, std::uint64_t{1});
  const auto sum = hn::Add(a, b);
  const auto part = hn::Sub(sum, a);
  const auto missing = hn::Add(hn::Sub(a, hn::Sub(sum, part)), hn::Sub(b, part));
  const auto side = hn::Mul(sum, missing);  // above 0: the exact sum is farther from 0
  const auto bits = hn::BitCast(integers, sum);
  const auto even = hn::Eq(hn::And(bits, one), hn::Zero(integers));
  const auto outwards = hn::IfThenElseZero(hn::RebindMask(integers, hn::Gt(side, zero)), one);
  const auto inwards = hn::IfThenElseZero(hn::RebindMask(integers, hn::Lt(side, zero)), one);
  return hn::BitCast(d, hn::Add(bits, hn::IfThenElseZero(even, hn::Sub(outwards, inwards))));
}
#endif

// a + x * y in float32, rounded once on every instruction set. The product of two float32 is exact in float64.
template <class D>
HWY_INLINE hn::Vec<D> fused(D d, hn::Vec<D> a, hn::Vec<D> x, hn::Vec<D> y) {
#if HWY_NATIVE_FMA
  (void)d;
  return hn::MulAdd(x, y, a);
#elif HWY_TARGET == HWY_SCALAR
  return hn::Set(d, std::fma(hn::GetLane(x), hn::GetLane(y), hn::GetLane(a)));
#else
  const Wide<D> wide;
  const auto lower = hn::Mul(lower_in_double(d, x), lower_in_double(d, y));
  const auto upper = hn::Mul(upper_in_double(d, x), upper_in_double(d, y));
  return in_float(d, sum_rounded_to_odd(wide, lower_in_double(d, a), lower),
                  sum_rounded_to_odd(wide, upper_in_double(d, a), upper));
#endif
}

// gradient + weight_decay * parameters. In float32 it is rounded once, as in torch's kernels: where the two cancel, rules
// that divide by the gradient's size would show every other rounding.
template <class D, class T = hn::TFromD<D>>
HWY_INLINE hn::Vec<D> with_decay(D d, hn::Vec<D> gradient, T weight_decay, hn::Vec<D> parameters) {
  if (weight_decay == 0) return gradient;
  if constexpr (std::is_same_v<T, float>) {
    return fused(d, gradient, hn::Set(d, weight_decay), parameters);
  } else {
    return hn::Add(gradient, hn::Mul(hn::Set(d, weight_decay), parameters));
  }
}

// Prepares the gradient as step.h says.
template <class T>
class Preparation {
 public:
  explicit Preparation(const Step& step)
      : divisor_(step.divisor),
        inverse_(static_cast<T>(1 / step.divisor)),
        factor_(static_cast<T>(step.clip_factor)),
        limit_(static_cast<T>(step.clip_value)),
        changes_(step.divisor != 1 || step.clip_factor != 1 ||
                 step.clip_value != std::numeric_limits<double>::infinity()),
        multiplies_(static_cast<double>(inverse_) * step.divisor == 1 && is_power_of_two(step.divisor)),
        divides_in_double_(static_cast<double>(static_cast<T>(step.divisor)) != step.divisor) {}

  bool changes() const { return changes_; }

  // Multiplying by the inverse of a power of two is dividing, and faster.
  template <class D>
  HWY_INLINE hn::Vec<D> divided(D d, hn::Vec<D> g) const {
    if (multiplies_) return hn::Mul(g, hn::Set(d, inverse_));
    if constexpr (std::is_same_v<T, float>) {
      if (divides_in_double_) return divided_in_double(d, g);
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
  // By a divisor that float32 does not hold.
  template <class D>
  HWY_INLINE hn::Vec<D> divided_in_double(D d, hn::Vec<D> g) const {
#if HWY_TARGET != HWY_SCALAR
    const Wide<D> wide;
    const auto divisor = hn::Set(wide, divisor_);
    const auto lower = hn::Div(lower_in_double(d, g), divisor);
    const auto upper = hn::Div(upper_in_double(d, g), divisor);
    if (HWY_LIKELY(hn::AllFalse(wide, hn::Or(is_delicate(wide, lower), is_delicate(wide, upper))))) {
      return in_float(d, lower, upper);
    }
#endif
    return divided_one_by_one(d, g);
  }

  // Where rounding a quotient of doubles again to float32 may go wrong: in the middle of two float32, and below their
  // normal range.
  template <class D>
  HWY_INLINE hn::Mask<D> is_delicate(D d, hn::Vec<D> quotient) const {
    const hn::RebindToUnsigned<D> integers;
    const auto dropped = hn::And(hn::BitCast(integers, quotient), hn::Set(integers, (std::uint64_t{1} << 29) - 1));
    const auto is_middle = hn::RebindMask(d, hn::Eq(dropped, hn::Set(integers, std::uint64_t{1} << 28)));
    const auto is_small = hn::Lt(hn::Abs(quotient), hn::Set(d, 0x1p-126));
    return hn::Or(is_middle, hn::And(is_small, hn::Ne(quotient, hn::Zero(d))));
  }

  template <class D>
  HWY_NOINLINE hn::Vec<D> divided_one_by_one(D d, hn::VecArg<hn::Vec<D>> g) const {
    HWY_ALIGN float lanes[hn::MaxLanes(d)];
    hn::Store(g, d, lanes);
    for (float& lane : lanes) lane = float_quotient(lane, divisor_);
    return hn::Load(d, lanes);
  }

  static bool is_power_of_two(double x) {
    int exponent = 0;
    return std::frexp(x, &exponent) == 0.5;
  }

  double divisor_;
  T inverse_;
  T factor_;
  T limit_;
  bool changes_;
  bool multiplies_;
  bool divides_in_double_;
};

// Elements that are prepared at once, and stay in the first-level cache until they are read. Few, as the processor fetches
// ahead in all the streams of an update only while they are read by turns: with 1,024, Adam in main memory takes a third
// longer.
constexpr std::size_t kPreparedAtOnce = 256;

template <class T>
HWY_NOINLINE void prepare_gradient(const Preparation<T>& prepare, std::size_t count, const T* gradient, T* prepared) {
  for_each_vector(count, std::array<const T*, 1>{gradient}, std::array<T*, 1>{prepared},
                  [&prepare](auto d, const std::array<const T*, 1>& read, const std::array<T*, 1>& written) HWY_ATTR {
                    hn::StoreU(prepare.clipped(d, prepare.divided(d, hn::LoadU(d, read[0]))), d, written[0]);
                  });
}

// body's `read` is `gradient`; its `written` the parameters and `kStates` buffers of state, all from element `begin` on.
template <std::size_t kStates, class T, class Body>
HWY_NOINLINE void update_range(const Slice<T>& slice, std::size_t begin, std::size_t count, const T* gradient,
                               const Body& body) {
  std::array<T*, 1 + kStates> written = {slice.parameters.data() + begin};
  for (std::size_t i = 0; i < kStates; ++i) written[1 + i] = slice.state[i].data() + begin;
  for_each_vector(count, std::array<const T*, 1>{gradient}, written, body);
}

// The same of all of `slice`, and of the gradient as it lies there.
template <std::size_t kStates, class T, class Body>
void apply_vectors(const Slice<T>& slice, const Body& body) {
  update_range<kStates>(slice, 0, slice.gradient.size(), static_cast<const T*>(slice.gradient.data()), body);
}

// The same of the gradient prepared.
template <std::size_t kStates, class T, class Body>
void update_vectors(const Slice<T>& slice, const Step& step, const Body& body) {
  const Preparation<T> prepare(step);
  if (!prepare.changes()) return apply_vectors<kStates>(slice, body);
  HWY_ALIGN T prepared[kPreparedAtOnce];
  const std::size_t count = slice.gradient.size();
  for (std::size_t begin = 0; begin < count; begin += kPreparedAtOnce) {
    const std::size_t some = HWY_MIN(kPreparedAtOnce, count - begin);
    prepare_gradient(prepare, some, static_cast<const T*>(slice.gradient.data()) + begin, prepared);
    update_range<kStates>(slice, begin, some, static_cast<const T*>(prepared), body);
  }
}

// body's `read` is the parameters; its `written` the gradient, prepared, and `kStates` buffers of state.
template <std::size_t kStates, class T, class Body>
HWY_NOINLINE void direct_vectors(const Slice<T>& slice, const Step& step, const Body& body) {
  const std::size_t count = slice.gradient.size();
  const Preparation<T> prepare(step);
  for (std::size_t begin = 0; begin < count; begin += kPreparedAtOnce) {
    const std::size_t some = HWY_MIN(kPreparedAtOnce, count - begin);
    std::array<T*, 1 + kStates> written = {slice.gradient.data() + begin};
    for (std::size_t i = 0; i < kStates; ++i) written[1 + i] = slice.state[i].data() + begin;
    if (prepare.changes()) prepare_gradient(prepare, some, static_cast<const T*>(written[0]), written[0]);
    for_each_vector(some, std::array<const T*, 1>{slice.parameters.data() + begin}, written, body);
  }
}

}  // namespace brigade::optim::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
