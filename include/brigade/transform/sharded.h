// One value per device: what pmap takes and returns.
#pragma once

#include <ATen/core/Tensor.h>

#include <cmath>
#include <cstdint>
#include <deque>
#include <limits>
#include <optional>
#include <source_location>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "brigade/base/error.h"
#include "brigade/runtime/device.h"
#include "brigade/transform/axes.h"
#include "brigade/tree/tree.h"

namespace brigade {

namespace detail {

// Which argument of which pmap took the values of a Sharded, and whether that call failed while it wrote into them.
struct Taken {
  std::size_t argument = 0;
  std::source_location pmap = {};
  bool failed = false;
};

// The values of one leaf on every device as one tensor: stacked along `axis`, or undefined as all of them are.
// Throws ShapeError when they differ in shape or dtype, or there is no such axis; it names `path`.
at::Tensor stack_leaf(const std::vector<at::Tensor>& values, int axis, const tree::Path& path,
                      std::source_location site);

[[noreturn]] void throw_replicas_differ(const std::string& first, const std::string& other, int position,
                                        const tree::Path& path, std::source_location site);

// Enough digits to tell any two values apart. The zeros have signs.
std::string number_text(long double number, int digits);
template <tree::NumberLeaf Number>
std::string number_text(Number number) {
  if constexpr (std::is_floating_point_v<Number>) {
    return number_text(number, std::numeric_limits<Number>::max_digits10);
  } else {
    return std::to_string(number);
  }
}

// Whether their texts are the same.
template <tree::NumberLeaf Number>
bool reads_same(Number a, Number b) {
  if constexpr (std::is_floating_point_v<Number>) {
    return std::signbit(a) == std::signbit(b) && (a == b || (std::isnan(a) && std::isnan(b)));
  } else {
    return a == b;
  }
}

// Throw InvalidArgument, with the path and the values that differ, unless the leaf is the same bits at position 0 and at
// `position` (as a number, it reads the same); ShapeError when it differs in shape or dtype.
void require_same(const at::Tensor& first, const at::Tensor& other, int position, const tree::Path& path,
                  std::source_location site);
template <tree::NumberLeaf Number>
void require_same(const Number& first, const Number& other, int position, const tree::Path& path,
                  std::source_location site) {
  if (!reads_same(first, other)) throw_replicas_differ(number_text(first), number_text(other), position, path, site);
}

// Throws TreeError for an undefined tensor.
at::Tensor clone_leaf(const at::Tensor& tensor);

[[noreturn]] void throw_taken(const Taken& taken);
[[noreturn]] void throw_position_out_of_range(std::int64_t position, std::size_t size);

}  // namespace detail

// Whether replicas of which one value is returned are compared first.
enum class Agreement : std::uint8_t {
  kChecked,  // bit for bit: reads every replica once
  kAssumed,
};

// Values are handles: copying a Sharded copies no tensor data.
template <class T>
class Sharded {
  static_assert(tree::Tree<T>, "a Sharded holds trees: tensors, numbers, and containers and aggregates of them");

 public:
  // A vector of bools packs them, so that there is no reference to one.
  using Values = std::conditional_t<std::is_same_v<T, bool>, std::deque<bool>, std::vector<T>>;

  Sharded() = default;

  // One value per position. `out_axes` is what stack() goes by.
  explicit Sharded(Values values, Axes out_axes = 0) : values_(std::move(values)), out_axes_(std::move(out_axes)) {}

  // Number of positions. Zero for one that was never given values, or moved from.
  std::int64_t size() const noexcept { return static_cast<std::int64_t>(values_.size()); }

  // The value at a position, with no copy. Throws InvalidArgument when out of range or taken.
  const T& operator[](std::int64_t position) const {
    const Values& all = values();
    if (position < 0 || position >= size()) detail::throw_position_out_of_range(position, all.size());
    return all[static_cast<std::size_t>(position)];
  }

  // Throws InvalidArgument when a pmap took the values: they were passed with std::move.
  const Values& values() const {
    if (taken_) detail::throw_taken(*taken_);
    return values_;
  }

  auto begin() const { return values().begin(); }
  auto end() const { return values().end(); }

  // One tree in which each tensor holds all positions: along the axis of out_axes (a new dimension, 0 by default).
  // Leaves whose axis is none are checked to be the same bits everywhere and returned once; the other numbers are those of
  // position 0. Gradient: of a stacked leaf to every device its slice, of one returned once to device 0.
  //
  // Throws ShapeError when shapes or dtypes differ, InvalidArgument when values that should agree do not, TreeError when
  // out_axes is no prefix of T or structures differ; each names the leaf.
  T stack(Agreement agreement = Agreement::kChecked, std::source_location site = std::source_location::current()) const;

  // The value of position 0, with no copy, for values of which every device holds the same. Gradient: to device 0.
  //
  // Throws InvalidArgument, naming the leaf, the position and the first element, when a replica differs by a bit;
  // ShapeError when it does in shape or dtype, TreeError in structure.
  const T& unreplicate(Agreement agreement = Agreement::kChecked,
                       std::source_location site = std::source_location::current()) const& {
    const T& first = (*this)[0];
    if (agreement == Agreement::kAssumed) return first;
    for (std::size_t i = 1; i < values_.size(); ++i) {
      tree::for_each([&](const tree::Path& path, const auto& one,
                         const auto& other) { detail::require_same(one, other, static_cast<int>(i), path, site); },
                     first, values_[i]);
    }
    return first;
  }

  T unreplicate(Agreement agreement = Agreement::kChecked,
                std::source_location site = std::source_location::current()) && {
    return std::as_const(*this).unreplicate(agreement, site);
  }

  const Axes& out_axes() const noexcept { return out_axes_; }

  // For pmap: the values are gone, and reading them throws.
  void take_away(detail::Taken by) noexcept {
    values_.clear();
    taken_ = by;
  }

 private:
  Values values_;
  Axes out_axes_ = 0;
  std::optional<detail::Taken> taken_;
};

template <class T>
T Sharded<T>::stack(Agreement agreement, std::source_location site) const {
  T result = (*this)[0];
  const auto axis_of = [&](const tree::Path& path) { return out_axes_.at(path, "out_axes", /*axis=*/{}, site); };
  // By leaf, then by position.
  std::vector<std::vector<at::Tensor>> columns;
  for (std::size_t i = 0; i < values_.size(); ++i) {
    std::size_t next = 0;
    tree::for_each(
        [&](const tree::Path& path, const auto& first, const auto& own) {
          if (!axis_of(path) && agreement == Agreement::kChecked)
            detail::require_same(first, own, static_cast<int>(i), path, site);
          if constexpr (tree::TensorLeaf<std::remove_cvref_t<decltype(own)>>) {
            if (i == 0) columns.emplace_back();
            columns[next++].push_back(own);
          }
        },
        values_[0], values_[i]);
  }
  std::size_t next = 0;
  tree::for_each(
      [&](const tree::Path& path, auto& leaf) {
        if constexpr (tree::TensorLeaf<std::remove_cvref_t<decltype(leaf)>>) {
          const auto& column = columns[next++];
          if (const auto axis = axis_of(path)) leaf = detail::stack_leaf(column, *axis, path, site);
        }
      },
      result);
  return result;
}

namespace detail {

template <class T>
inline constexpr bool is_sharded = false;
template <class T>
inline constexpr bool is_sharded<Sharded<T>> = true;

}  // namespace detail

// A Sharded of tuples or pairs as a tuple of Shardeds, each with its part of out_axes:
// `std::tie(params, loss) = unzip(step(params, x, y));`
template <class Tuple>
requires tree::TupleNode<Tuple>
auto unzip(const Sharded<Tuple>& sharded) {
  return [&]<std::size_t... I>(std::index_sequence<I...>) {
    const auto column = [&]<std::size_t J>(std::integral_constant<std::size_t, J>) {
      using Value = std::tuple_element_t<J, Tuple>;
      typename Sharded<Value>::Values values;
      for (const Tuple& value : sharded) values.push_back(std::get<J>(value));
      return Sharded<Value>(std::move(values), sharded.out_axes().child(J));
    };
    return std::tuple(column(std::integral_constant<std::size_t, I>{})...);
  }
  (std::make_index_sequence<std::tuple_size_v<Tuple>>{});
}

// A copy of `tree` for each device: its tensors are cloned, without their graph. All devices when none are named.
// Throws InvalidArgument when `on` is empty, TreeError when a tensor is undefined.
template <tree::Tree T>
Sharded<T> replicate(const T& tree, const std::vector<Device>& on = devices()) {
  if (on.empty()) throw InvalidArgument("replicate onto no devices: leave `on` out to use all, or name at least one");
  typename Sharded<T>::Values values;
  for (std::size_t i = 0; i < on.size(); ++i) {
    values.push_back(tree::map([](const at::Tensor& t) { return detail::clone_leaf(t); }, tree));
  }
  return Sharded<T>(std::move(values));
}

}  // namespace brigade
