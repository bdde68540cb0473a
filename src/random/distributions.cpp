#include "brigade/random/distributions.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>
#include <type_traits>

#include "brigade/base/error.h"
#include "random/fill.h"
#include "random/kernels.h"

namespace brigade::random {
namespace {

// The type of the elements that a kernel's span holds.
template <class Span>
using Element = typename std::remove_cvref_t<Span>::element_type;

template <class T>
kernels::Interval<T> interval_of(double low, double high) {
  return {static_cast<T>(low), static_cast<T>(high) - static_cast<T>(low)};
}

void check_interval(double low, double high, at::ScalarType dtype) {
  if (!(low <= high)) {
    throw InvalidArgument(fmt::format("random::uniform: the interval [{}, {}) is empty; give low <= high", low, high));
  }
  const double range = dtype == at::kFloat ? interval_of<float>(low, high).range : interval_of<double>(low, high).range;
  if (!std::isfinite(range)) {
    throw InvalidArgument(
        fmt::format("random::uniform: high - low is not finite in {} for the interval [{}, {}); give finite "
                    "bounds that are closer together",
                    c10::toString(dtype), low, high));
  }
}

// The normal's argument covers the open interval (-1, 1), whose ends erfinv maps to infinity.
template <class T>
kernels::Normal<T> standard_normal() {
  const T low = std::nextafter(T{-1}, T{0});
  return {{low, T{1} - low}, -std::numeric_limits<T>::infinity(), std::numeric_limits<T>::infinity()};
}

template <class T>
kernels::Normal<T> normal_between(T low, T high) {
  constexpr T kInfinity = std::numeric_limits<T>::infinity();
  const T sqrt2 = static_cast<T>(1.41421356237309504880);
  // In double for both, so that a float's argument is rounded once.
  const T from = static_cast<T>(std::erf(static_cast<double>(low / sqrt2)));
  const T to = static_cast<T>(std::erf(static_cast<double>(high / sqrt2)));
  return {{from, to - from}, std::nextafter(low, kInfinity), std::nextafter(high, -kInfinity)};
}

void check_logits(const at::Tensor& logits) {
  if (!logits.defined() || logits.dim() == 0) {
    throw ShapeError("random::categorical: logits need a last axis of categories; give [..., categories]");
  }
  if (logits.size(-1) == 0) {
    throw ShapeError(fmt::format("random::categorical: logits [{}] have no categories to choose from; give one or more",
                                 fmt::join(logits.sizes().vec(), ", ")));
  }
  check_floating("categorical", logits.scalar_type());
}

at::IntArrayRef batch_of(const at::Tensor& logits) { return logits.sizes().slice(0, logits.sizes().size() - 1); }

// Whether `batch` broadcasts to the last sizes of `shape` without growing them.
bool ends_in(at::IntArrayRef shape, at::IntArrayRef batch) {
  if (shape.size() < batch.size()) return false;
  const at::IntArrayRef end = shape.slice(shape.size() - batch.size());
  return std::equal(batch.begin(), batch.end(), end.begin(),
                    [](auto from, auto to) { return from == 1 || from == to; });
}

}  // namespace

at::Tensor bits(Key key, at::IntArrayRef shape, int width) {
  const auto draw = [key](std::uint64_t first, auto out) { kernels::bits(key, first, out); };
  switch (width) {
    case 8:
      return filled<std::uint8_t>("bits", shape, at::kByte, draw);
    case 16:
      return filled<std::uint16_t>("bits", shape, at::kShort, draw);
    case 32:
      return filled<std::uint32_t>("bits", shape, at::kInt, draw);
    case 64:
      return filled<std::uint64_t>("bits", shape, at::kLong, draw);
    default:
      throw InvalidArgument(fmt::format("random::bits: width is {}; give 8, 16, 32 or 64", width));
  }
}

at::Tensor uniform(Key key, at::IntArrayRef shape, double low, double high, at::ScalarType dtype) {
  check_floating("uniform", dtype);
  check_interval(low, high, dtype);
  return filled_floating("uniform", shape, dtype, [=](std::uint64_t first, auto out) {
    kernels::uniform(key, first, interval_of<Element<decltype(out)>>(low, high), out);
  });
}

at::Tensor randint(Key key, at::IntArrayRef shape, std::int64_t low, std::int64_t high) {
  constexpr std::int64_t kLowest = std::numeric_limits<std::int32_t>::min();
  constexpr std::int64_t kHighest = std::numeric_limits<std::int32_t>::max();
  if (low < kLowest || low > kHighest || high < kLowest || high > kHighest + 1) {
    throw InvalidArgument(
        fmt::format("random::randint: [{}, {}) does not fit 32-bit integers; give a low of at least {} and a "
                    "high of at most {}",
                    low, high, kLowest, kHighest + 1));
  }
  const auto [high_key, low_key] = split<2>(key);
  const kernels::IntegerRange range{high_key, low_key, static_cast<std::int32_t>(low),
                                    high > low ? static_cast<std::uint32_t>(high - low) : 1};
  return filled<std::int32_t>("randint", shape, at::kInt, [&range](std::uint64_t first, std::span<std::int32_t> out) {
    kernels::randint(first, range, out);
  });
}

at::Tensor bernoulli(Key key, double p, at::IntArrayRef shape) {
  if (!(p >= 0.0 && p <= 1.0)) {
    throw InvalidArgument(fmt::format("random::bernoulli: p is {}; give a probability from 0 to 1", p));
  }
  // A uniform is k * 2^-23, so it is below p for the k below this.
  const auto threshold =
      static_cast<std::uint32_t>(std::ceil(std::ldexp(static_cast<double>(static_cast<float>(p)), 23)));
  return filled<bool>("bernoulli", shape, at::kBool, [=](std::uint64_t first, std::span<bool> out) {
    kernels::bernoulli(key, first, threshold, out);
  });
}

at::Tensor normal(Key key, at::IntArrayRef shape, at::ScalarType dtype) {
  return filled_floating("normal", shape, dtype, [key](std::uint64_t first, auto out) {
    kernels::normal(key, first, standard_normal<Element<decltype(out)>>(), out);
  });
}

at::Tensor truncated_normal(Key key, double low, double high, at::IntArrayRef shape, at::ScalarType dtype) {
  check_floating("truncated_normal", dtype);
  if (!(low < high)) {
    throw InvalidArgument(
        fmt::format("random::truncated_normal: nothing lies between {} and {}; give low < high", low, high));
  }
  return filled_floating("truncated_normal", shape, dtype, [=](std::uint64_t first, auto out) {
    using T = Element<decltype(out)>;
    kernels::normal(key, first, normal_between(static_cast<T>(low), static_cast<T>(high)), out);
  });
}

at::Tensor exponential(Key key, at::IntArrayRef shape, at::ScalarType dtype) {
  return filled_floating("exponential", shape, dtype,
                         [key](std::uint64_t first, auto out) { kernels::exponential(key, first, out); });
}

at::Tensor gumbel(Key key, at::IntArrayRef shape, at::ScalarType dtype) {
  return filled_floating("gumbel", shape, dtype,
                         [key](std::uint64_t first, auto out) { kernels::gumbel(key, first, out); });
}

at::Tensor categorical(Key key, const at::Tensor& logits) {
  check_logits(logits);
  return categorical(key, logits, batch_of(logits));
}

at::Tensor categorical(Key key, const at::Tensor& logits, at::IntArrayRef shape) {
  check_logits(logits);
  check_shape("categorical", shape);
  if (!ends_in(shape, batch_of(logits))) {
    throw ShapeError(fmt::format(
        "random::categorical: shape [{}] does not fit logits [{}]; let it end in [{}], or in sizes "
        "that these broadcast to",
        fmt::join(shape.vec(), ", "), fmt::join(logits.sizes().vec(), ", "), fmt::join(batch_of(logits).vec(), ", ")));
  }
  at::DimVector sizes(shape.begin(), shape.end());
  sizes.push_back(logits.size(-1));
  const at::Tensor noise = gumbel(key, sizes, logits.scalar_type());
  return (noise.to(logits.device()) + logits.detach()).argmax(-1);
}

}  // namespace brigade::random
