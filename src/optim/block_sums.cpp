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

template <class D, class T>
HWY_INLINE hn::Vec<D> load_in_double(D d, const T* values) {
  if constexpr (std::is_same_v<T, double>) {
    return hn::LoadU(d, values);
  } else {
    return hn::PromoteTo(d, hn::LoadU(hn::Rebind<float, D>(), values));
  }
}

// Adds the squares of `count` elements to the 16 lanes at `lanes`. `sums` grows by one vector a call until it holds them
// all.
template <class T, class... Sums>
HWY_INLINE void add_squares(const T* values, std::size_t count, double* lanes, Sums... sums) {
  const SumTag d;
  if constexpr (sizeof...(Sums) < kLanes / hn::MaxLanes(d)) {
    add_squares(values, count, lanes, sums..., hn::Load(d, lanes + sizeof...(Sums) * hn::MaxLanes(d)));
  } else {
    const auto add = [](const T* from, auto& sum) HWY_ATTR {
      const auto x = load_in_double(SumTag(), from);
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
    std::size_t at = 0;
    ((hn::Store(sums, d, lanes + at), at += hn::Lanes(d)), ...);
  }
}

// add(first element, how many, lanes) adds the squares of a block.
template <class Add>
HWY_INLINE void sum_blocks(std::size_t elements, std::span<double> sums, const Add& add) {
  for (std::size_t b = 0; b < sums.size(); ++b) {
    const std::size_t begin = b * kBlockElements;
    HWY_ALIGN double lanes[kLanes] = {};
    add(begin, HWY_MIN(kBlockElements, elements - begin), lanes);
    sums[b] = tree_sum(lanes);
  }
}

template <class T>
void sum_squares(std::span<const T> values, std::span<double> sums) {
  sum_blocks(values.size(), sums, [&](std::size_t begin, std::size_t count, double* lanes) HWY_ATTR {
    add_squares(values.data() + begin, count, lanes);
  });
}

// A vector of the gradient as a rule sees it. The difference is 0, and NaN for what is not finite, which clipping would
// hide.
template <class T>
struct PrepareLoop {
  Preparation<T> prepare;

  template <class D>
  HWY_INLINE void operator()(D d, const std::array<const T*, 1>& gradient, const std::array<T*, 1>& prepared) const {
    const auto g = prepare.divided(d, hn::LoadU(d, gradient[0]));
    hn::StoreU(hn::Add(prepare.clipped(d, g), hn::Sub(g, g)), d, prepared[0]);
  }
};

template <class T>
void sum_prepared_squares(std::span<const T> gradient, const Step& step, std::span<double> sums) {
  const PrepareLoop<T> loop{Preparation<T>(step)};
  if (!loop.prepare.changes()) return sum_squares(gradient, sums);
  sum_blocks(gradient.size(), sums, [&](std::size_t begin, std::size_t count, double* lanes) HWY_ATTR {
    HWY_ALIGN T prepared[kPreparedAtOnce];
    for (std::size_t at = 0; at < count; at += kPreparedAtOnce) {
      const std::size_t some = HWY_MIN(kPreparedAtOnce, count - at);
      for_each_vector(some, std::array<const T*, 1>{gradient.data() + begin + at}, std::array<T*, 1>{prepared}, loop);
      add_squares(static_cast<const T*>(prepared), some, lanes);
    }
  });
}

void squares_float(std::span<const float> values, std::span<double> sums) { sum_squares(values, sums); }
void squares_double(std::span<const double> values, std::span<double> sums) { sum_squares(values, sums); }
void prepared_squares_float(std::span<const float> gradient, const Step& step, std::span<double> sums) {
  sum_prepared_squares(gradient, step, sums);
}
void prepared_squares_double(std::span<const double> gradient, const Step& step, std::span<double> sums) {
  sum_prepared_squares(gradient, step, sums);
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
