// How the elements of a dtype lie in memory, and the vectors they are combined as, for each instruction set (Highway).
//
// Numbers of 16 bits are combined as float32, which holds all of them. Both ways are integer arithmetic, and the one
// conversion of an integer is exact: the bits depend neither on the instruction set nor on the processor's modes.

#if defined(BRIGADE_COMM_FORMATS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BRIGADE_COMM_FORMATS_INL_H_
#undef BRIGADE_COMM_FORMATS_INL_H_
#else
#define BRIGADE_COMM_FORMATS_INL_H_
#endif

#include <hwy/highway.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

HWY_BEFORE_NAMESPACE();
namespace brigade::comm::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// A format has
//   Stored, Value      what lies in memory, and what is combined
//   decode(d, v)       a vector of d, of Value, from one of Stored
//   encode(d, v)       and back, rounded to nearest even; the one NaN is the quiet one, positive and without payload
//   divides_by(y)      whether a Value divided by the Value y, and then encoded, is the exact quotient rounded once
template <class T>
struct Plain {
  using Stored = T;
  using Value = T;

  static bool divides_by(double y) { return static_cast<double>(static_cast<T>(y)) == y; }

  template <class D>
  static HWY_INLINE hn::Vec<D> decode(D, hn::Vec<D> v) {
    return v;
  }
  // Which operand's NaN an addition passes on is up to processor and compiler.
  template <class D>
  static HWY_INLINE hn::Vec<D> encode(D d, hn::Vec<D> v) {
    if constexpr (std::is_floating_point_v<T>) {
      return hn::IfThenElse(hn::IsNaN(v), hn::Set(d, std::numeric_limits<T>::quiet_NaN()), v);
    } else {
      return v;
    }
  }
};

template <class Format>
constexpr bool kIsPlain = std::is_same_v<Format, Plain<typename Format::Stored>>;

// Dividing in float32 and rounding again fails where the first quotient is the middle m of two numbers of p bits and the
// exact one lies beside it. m has p + 1 bits, so with an integer y of 24 - (p + 1) bits m * y is a float32. The dividend is
// another one and thus at least a unit of m * y away from it, which divided by y is more than half a unit of m: its
// quotient does not round to m. In the subnormal numbers of bfloat16 dividends and m are multiples of 2^-134, so quotients
// other than m are at least 2^-134 / y away from it, and float32 resolves 2^-149.
inline bool is_integer_up_to(double y, double limit) { return y == std::trunc(y) && std::abs(y) <= limit; }

struct Float16 {
  using Stored = std::uint16_t;
  using Value = float;

  static bool divides_by(double y) { return is_integer_up_to(y, 0x1p12); }

  template <class D>
  static HWY_INLINE hn::Vec<D> decode(D d, hn::Vec<hn::Rebind<Stored, D>> stored) {
    const hn::RebindToSigned<D> di;
    const auto bits = hn::PromoteTo(di, stored);
    const auto sign = hn::ShiftLeft<16>(hn::And(bits, hn::Set(di, 0x8000)));
    const auto magnitude = hn::And(bits, hn::Set(di, 0x7FFF));
    const auto bias = hn::Set(di, (127 - 15) << 23);
    const auto normal = hn::Add(hn::ShiftLeft<13>(magnitude), bias);
    const auto special = hn::Add(normal, bias);  // infinity and NaN: exponent 31 becomes 255
    const auto units = hn::Mul(hn::ConvertTo(d, magnitude), hn::Set(d, 0x1p-24F));
    auto value = hn::IfThenElse(hn::Gt(magnitude, hn::Set(di, 0x7BFF)), special, normal);
    value = hn::IfThenElse(hn::Lt(magnitude, hn::Set(di, 0x0400)), hn::BitCast(di, units), value);
    return hn::BitCast(d, hn::Or(value, sign));
  }

  template <class D>
  static HWY_INLINE hn::Vec<hn::Rebind<Stored, D>> encode(D, hn::Vec<D> v) {
    const hn::RebindToSigned<D> di;
    const hn::RebindToUnsigned<D> du;
    const auto one = hn::Set(di, 1);
    const auto bits = hn::BitCast(di, v);
    const auto sign = hn::And(hn::ShiftRight<16>(bits), hn::Set(di, 0x8000));
    const auto magnitude = hn::And(bits, hn::Set(di, 0x7FFFFFFF));
    // From 2^16 on it is infinity; below, a carry out of the largest number makes the infinity.
    const auto limited = hn::Min(magnitude, hn::Set(di, (127 + 16) << 23));
    const auto exponent = hn::ShiftRight<23>(limited);
    const auto significand = hn::Or(hn::And(limited, hn::Set(di, 0x007FFFFF)), hn::Set(di, 0x00800000));

    // The significand in halves of the last place, which is 2^-24 below 2^-14, and whether more was cut off.
    const auto place = hn::Min(hn::Sub(hn::Set(di, 125), exponent), hn::Set(di, 24));
    const auto cut = hn::BitCast(du, hn::Max(place, hn::Set(di, 12)));
    const auto halves = hn::BitCast(di, hn::Shr(hn::BitCast(du, significand), cut));
    const auto is_cut = hn::Ne(hn::BitCast(di, hn::Shl(hn::BitCast(du, halves), cut)), significand);
    const auto is_odd = hn::And(hn::ShiftRight<1>(halves), one);
    const auto rounded = hn::ShiftRight<1>(hn::Add(halves, hn::Or(is_odd, hn::IfThenElseZero(is_cut, one))));

    // The significand's first bit counts as one in the exponent.
    const auto exponents = hn::ShiftLeft<10>(hn::Max(hn::Sub(exponent, hn::Set(di, 127 - 14)), hn::Zero(di)));
    const auto result = hn::Or(hn::Add(rounded, exponents), sign);
    const auto is_nan = hn::Gt(magnitude, hn::Set(di, 0x7F800000));
    return hn::DemoteTo(hn::Rebind<Stored, D>(), hn::IfThenElse(is_nan, hn::Set(di, 0x7E00), result));
  }
};

struct BFloat16 {
  using Stored = std::uint16_t;
  using Value = float;

  static bool divides_by(double y) { return is_integer_up_to(y, 0x1p15); }

  template <class D>
  static HWY_INLINE hn::Vec<D> decode(D d, hn::Vec<hn::Rebind<Stored, D>> stored) {
    return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(hn::RebindToUnsigned<D>(), stored)));
  }

  // A carry out of the largest number makes the infinity.
  template <class D>
  static HWY_INLINE hn::Vec<hn::Rebind<Stored, D>> encode(D, hn::Vec<D> v) {
    const hn::RebindToSigned<D> di;
    const hn::RebindToUnsigned<D> du;
    const auto bits = hn::BitCast(du, v);
    const auto is_odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(du, 1));
    const auto rounded = hn::ShiftRight<16>(hn::Add(bits, hn::Add(is_odd, hn::Set(du, 0x7FFF))));
    const auto is_nan = hn::Gt(hn::And(hn::BitCast(di, v), hn::Set(di, 0x7FFFFFFF)), hn::Set(di, 0x7F800000));
    return hn::DemoteTo(hn::Rebind<Stored, D>(), hn::IfThenElse(is_nan, hn::Set(di, 0x7FC0), hn::BitCast(di, rounded)));
  }
};

}  // namespace brigade::comm::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // BRIGADE_COMM_FORMATS_INL_H_
