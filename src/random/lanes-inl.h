// The elementary functions on vectors, beside the threefry block, compiled once for every instruction set (Highway).
//
// All targets give the same bits, because lanes never mix and every lane does the same IEEE operations in the same
// order: no MulAdd, whose rounding depends on the target, and nothing of hwy/contrib/math, which is built on it.
// Division and square root are correctly rounded by the processor.

#if defined(BRIGADE_RANDOM_LANES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BRIGADE_RANDOM_LANES_INL_H_
#undef BRIGADE_RANDOM_LANES_INL_H_
#else
#define BRIGADE_RANDOM_LANES_INL_H_
#endif

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "brigade/base/threefry-inl.h"
#include "hwy/highway.h"
#include "random/coefficients.h"

HWY_BEFORE_NAMESPACE();
namespace brigade::random::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using brigade::HWY_NAMESPACE::threefry;

// ---------------------------------------------------------------- elementary functions

// Polynomial by Horner's rule, highest power first, each step rounded twice.
template <class D, class T, std::size_t N>
HWY_INLINE hn::Vec<D> polynomial(D d, const std::array<T, N>& coefficients, hn::Vec<D> x) {
  hn::Vec<D> sum = hn::Set(d, coefficients[0]);
  for (std::size_t i = 1; i < N; ++i) sum = hn::Add(hn::Mul(sum, x), hn::Set(d, coefficients[i]));
  return sum;
}

// Natural logarithm of positive normal numbers, within 1 ulp. The method of fdlibm (Sun Microsystems, 1993): x = 2^k *
// (1 + f) with 1 + f in [sqrt(1/2), sqrt(2)), and a polynomial in s^2 for s = f / (2 + f).
template <class D>
HWY_INLINE hn::Vec<D> log(D d, hn::Vec<D> x) {
  using C = LogCoefficients<hn::TFromD<D>>;
  const hn::RebindToSigned<D> integers;
  const auto pattern = hn::BitCast(integers, x);
  const auto k = hn::ShiftRight<C::kMantissaBits>(hn::Sub(pattern, hn::Set(integers, C::kSqrtHalf)));
  const auto mantissa = hn::BitCast(d, hn::Sub(pattern, hn::ShiftLeft<C::kMantissaBits>(k)));
  const auto exponent = hn::ConvertTo(d, k);
  const auto f = hn::Sub(mantissa, hn::Set(d, 1));
  const auto s = hn::Div(f, hn::Add(hn::Set(d, 2), f));
  const auto z = hn::Mul(s, s);
  const auto rest = hn::Mul(z, polynomial(d, C::kSeries, z));
  const auto half_square = hn::Mul(hn::Mul(hn::Set(d, C::kHalf), f), f);
  const auto low = hn::Add(hn::Mul(s, hn::Add(half_square, rest)), hn::Mul(exponent, hn::Set(d, C::kLn2Low)));
  return hn::Sub(hn::Mul(exponent, hn::Set(d, C::kLn2High)), hn::Sub(hn::Sub(half_square, low), f));
}

// Inverse error function on [-1, 1] (M. Giles, GPU Computing Gems, 2011). w is -log(1 - x^2) and not log1p of the
// rounded square: what the difference adds to w, half an ulp of 1, does not show in a polynomial in w.
template <class D>
HWY_INLINE hn::Vec<D> erfinv(D d, hn::Vec<D> x) {
  using C = ErfinvCoefficients<hn::TFromD<D>>;
  const auto one = hn::Set(d, 1);
  const auto w = hn::Neg(log(d, hn::Sub(one, hn::Mul(x, x))));
  auto p = polynomial(d, C::kCentre, hn::Sub(w, hn::Set(d, C::kCentreOffset)));
  // One lane in 300 leaves the centre, so most vectors skip the tails; a lane's bits do not depend on its neighbours.
  const auto in_tail = hn::Ge(w, hn::Set(d, C::kTailFrom));
  if (HWY_UNLIKELY(!hn::AllFalse(d, in_tail))) {
    const auto root = hn::Sqrt(hn::Max(w, hn::Zero(d)));
    p = hn::IfThenElse(in_tail, polynomial(d, C::kTail, hn::Sub(root, hn::Set(d, C::kTailOffset))), p);
    if constexpr (C::kHasFarTail) {
      const auto far = hn::Ge(w, hn::Set(d, C::kFarTailFrom));
      p = hn::IfThenElse(far, polynomial(d, C::kFarTail, hn::Sub(root, hn::Set(d, C::kFarTailOffset))), p);
    }
  }
  const auto infinity = hn::Set(d, std::numeric_limits<hn::TFromD<D>>::infinity());
  return hn::Mul(hn::IfThenElse(hn::Eq(hn::Abs(x), one), infinity, p), x);
}

// a + b in double, rounded to odd: when the sum is inexact, the neighbour whose last bit is 1. A second rounding to
// float then gives what one rounding of the exact sum gives (S. Boldo, G. Melquiond, "Emulation of FMA and correctly
// rounded sums: proved algorithms using rounding to odd", IEEE Transactions on Computers 57, 2008).
template <class D>
HWY_INLINE hn::Vec<D> add_to_odd(D d, hn::Vec<D> a, hn::Vec<D> b) {
  const hn::RebindToSigned<D> integers;
  const auto sum = hn::Add(a, b);
  const auto b_part = hn::Sub(sum, a);
  const auto error = hn::Add(hn::Sub(a, hn::Sub(sum, b_part)), hn::Sub(b, b_part));
  const auto pattern = hn::BitCast(integers, sum);
  const auto one = hn::Set(integers, 1);
  const auto is_even = hn::Eq(hn::And(pattern, one), hn::Zero(integers));
  const auto is_inexact = hn::RebindMask(integers, hn::Ne(error, hn::Zero(d)));
  // +1 steps away from zero, where the exact sum lies if the error has the sum's sign; -1 towards it.
  const auto step = hn::Or(hn::BroadcastSignBit(hn::Xor(pattern, hn::BitCast(integers, error))), one);
  return hn::BitCast(d, hn::Add(pattern, hn::IfThenElseZero(hn::And(is_even, is_inexact), step)));
}

// Whole numbers below 2^32 in double lanes, modulo `span`. The quotient may be off by one, which the two corrections
// mend; all else is exact.
template <class D>
HWY_INLINE hn::Vec<D> remainder(D d, hn::Vec<D> x, double span) {
  const auto divisor = hn::Set(d, span);
  const auto quotient = hn::Floor(hn::Mul(x, hn::Set(d, 1.0 / span)));
  auto rest = hn::Sub(x, hn::Mul(quotient, divisor));
  rest = hn::IfThenElse(hn::Lt(rest, hn::Zero(d)), hn::Add(rest, divisor), rest);
  return hn::IfThenElse(hn::Ge(rest, divisor), hn::Sub(rest, divisor), rest);
}

// Between 64-bit integers below 2^52 and doubles, through the bits of 2^52 + x: no target lacks these operations.
template <class D>
HWY_INLINE hn::Vec<D> to_double(D d, hn::Vec<hn::RebindToUnsigned<D>> x) {
  const hn::RebindToUnsigned<D> integers;
  const auto magic = hn::Set(integers, std::uint64_t{0x4330000000000000});
  return hn::Sub(hn::BitCast(d, hn::Or(x, magic)), hn::BitCast(d, magic));
}
template <class D>
HWY_INLINE hn::Vec<hn::RebindToUnsigned<D>> to_integer(D d, hn::Vec<D> x) {
  const hn::RebindToUnsigned<D> integers;
  const auto magic = hn::Set(integers, std::uint64_t{0x4330000000000000});
  return hn::Xor(hn::BitCast(integers, hn::Add(x, hn::BitCast(d, magic))), magic);
}

}  // namespace brigade::random::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // include guard, toggled for every target
