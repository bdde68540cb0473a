#include "brigade/optim/block_sums.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "optim/block_sums.cpp"
#include <hwy/foreach_target.h>  // compiles this file once for each instruction set
#include <hwy/highway.h>

#include "optim/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace brigade::optim::HWY_NAMESPACE {

constexpr std::size_t kLanes = 16;

// The 16 lanes of a block's sum are one vector or several. Vectors of unknown length cannot be counted here.
#if HWY_HAVE_SCALABLE
using SumTag = hn::CappedTag<double, 2>;
#else
using SumTag = hn::CappedTag<double, kLanes>;
#endif

// The elements themselves, as float64.
struct Plain {
  template <class D, class T>
  HWY_INLINE hn::Vec<D> operator()(D d, const T* values) const {
    if constexpr (std::is_same_v<T, double>) {
      return hn::LoadU(d, values);
    } else {
      return hn::PromoteTo(d, hn::LoadU(hn::Rebind<float, D>(), values));
    }
  }
};

// As a rule sees them. The difference is 0, and NaN for what is not finite, which clipping would hide.
template <class T>
struct Prepared {
  Preparation<T> prepare;

  template <class D>
  HWY_INLINE hn::Vec<D> operator()(D d, const T* gradient) const {
    const hn::Rebind<T, D> narrow;
    const auto g = prepare.divided(narrow, hn::LoadU(narrow, gradient));
    const auto seen = hn::Add(prepare.clipped(narrow, g), hn::Sub(g, g));
    if constexpr (std::is_same_v<T, double>) {
      return seen;
    } else {
      return hn::PromoteTo(d, seen);
    }
  }
};

// `sums` grows by one vector a call until they hold all lanes.
template <class T, class Read, class... Sums>
HWY_INLINE double sum_of_block(const T* values, std::size_t count, const Read& read, Sums... sums) {
  const SumTag d;
  if constexpr (sizeof...(Sums) < kLanes / hn::MaxLanes(d)) {
    return sum_of_block(values, count, read, sums..., hn::Zero(d));
  } else {
    const auto add = [&read](const T* from, auto& sum) HWY_ATTR {
      const SumTag tag;
      const auto x = read(tag, from);
      sum = hn::Add(sum, hn::Mul(x, x));
    };
    const std::size_t whole = count - count % kLanes;
    for (std::size_t at = 0; at < whole;) ((add(values + at, sums), at += hn::Lanes(d)), ...);
    if (whole < count) {
      HWY_ALIGN T padded[kLanes] = {};
      std::memcpy(padded, values + whole, (count - whole) * sizeof(T));
      std::size_t at = 0;
      ((add(padded + at, sums), at += hn::Lanes(d)), ...);
    }
    HWY_ALIGN double lanes[kLanes];
    std::size_t at = 0;
    ((hn::Store(sums, d, lanes + at), at += hn::Lanes(d)), ...);
    return tree_sum(lanes);
  }
}

template <class T, class Read>
void sum_blocks(std::span<const T> values, std::span<double> sums, const Read& read) {
  for (std::size_t b = 0; b < sums.size(); ++b) {
    const std::size_t begin = b * kBlockElements;
    sums[b] = sum_of_block(values.data() + begin, HWY_MIN(kBlockElements, values.size() - begin), read);
  }
}

void squares_float(std::span<const float> values, std::span<double> sums) { sum_blocks(values, sums, Plain()); }
void squares_double(std::span<const double> values, std::span<double> sums) { sum_blocks(values, sums, Plain()); }
void prepared_squares_float(std::span<const float> gradient, const Step& step, std::span<double> sums) {
  sum_blocks(gradient, sums, Prepared<float>{Preparation<float>(step)});
}
void prepared_squares_double(std::span<const double> gradient, const Step& step, std::span<double> sums) {
  sum_blocks(gradient, sums, Prepared<double>{Preparation<double>(step)});
}

}  // namespace brigade::optim::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "brigade/base/error.h"

namespace brigade::optim {
HWY_EXPORT(squares_float);
HWY_EXPORT(squares_double);
HWY_EXPORT(prepared_squares_float);
HWY_EXPORT(prepared_squares_double);

namespace {

void check(std::size_t elements, std::span<double> sums) {
  if (sums.size() == block_count(elements)) return;
  throw ShapeError(fmt::format("sums_of_squares: {} elements have {} blocks of {}, and there is room for {} sums.",
                               elements, block_count(elements), kBlockElements, sums.size()));
}

template <class T>
std::optional<std::size_t> first_non_finite_of(std::span<const T> values) {
  const auto found = std::find_if(values.begin(), values.end(), [](T x) { return !std::isfinite(x); });
  if (found == values.end()) return {};
  return static_cast<std::size_t>(found - values.begin());
}

}  // namespace

void sums_of_squares(std::span<const float> values, std::span<double> sums) {
  check(values.size(), sums);
  HWY_DYNAMIC_DISPATCH(squares_float)(values, sums);
}

void sums_of_squares(std::span<const double> values, std::span<double> sums) {
  check(values.size(), sums);
  HWY_DYNAMIC_DISPATCH(squares_double)(values, sums);
}

void sums_of_squares(std::span<const float> gradient, const Step& step, std::span<double> sums) {
  check(gradient.size(), sums);
  HWY_DYNAMIC_DISPATCH(prepared_squares_float)(gradient, step, sums);
}

void sums_of_squares(std::span<const double> gradient, const Step& step, std::span<double> sums) {
  check(gradient.size(), sums);
  HWY_DYNAMIC_DISPATCH(prepared_squares_double)(gradient, step, sums);
}

double tree_sum(std::span<const double> values) {
  if (values.size() <= 1) return values.empty() ? 0 : values[0];
  const std::size_t left = std::bit_floor(values.size() - 1);
  return tree_sum(values.first(left)) + tree_sum(values.subspan(left));
}

std::optional<std::size_t> first_non_finite(std::span<const float> values) { return first_non_finite_of(values); }
std::optional<std::size_t> first_non_finite(std::span<const double> values) { return first_non_finite_of(values); }

}  // namespace brigade::optim
#endif  // HWY_ONCE
