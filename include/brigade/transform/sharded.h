// One value per device: what pmap takes and returns.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <source_location>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "brigade/base/error.h"
#include "brigade/runtime/device.h"
#include "brigade/transform/axes.h"
#include "brigade/tree/tree.h"

namespace brigade {

namespace detail {

// The values of one leaf on every device as one tensor: along `axis`, or, for none, the value on which all must agree.
// Throws ShapeError when shapes differ, InvalidArgument when replicas that should agree do not; both name `path`.
at::Tensor join_leaf(const std::vector<at::Tensor>& values, std::optional<int> axis, const std::string& path);

// Throws TreeError for an undefined tensor.
at::Tensor clone_leaf(const at::Tensor& tensor);

[[noreturn]] void throw_donated(const std::string& donated_to);
[[noreturn]] void throw_position_out_of_range(std::int64_t position, std::size_t size);

}  // namespace detail

// Values are handles: copying a Sharded copies no tensor data.
template <class T>
class Sharded {
  static_assert(tree::Tree<T>, "a Sharded holds trees: tensors, numbers, and containers and aggregates of them");

 public:
  Sharded() = default;

  // One value per position. `out_axes` is what stack() goes by.
  explicit Sharded(std::vector<T> values, Axes out_axes = 0)
      : values_(std::move(values)), out_axes_(std::move(out_axes)) {}

  // Number of positions. Zero for one that was never given values, or moved from.
  std::int64_t size() const noexcept { return static_cast<std::int64_t>(values_.size()); }

  // The value at a position, with no copy. Throws InvalidArgument when out of range or donated.
  const T& operator[](std::int64_t position) const {
    const std::vector<T>& all = values();
    if (position < 0 || position >= size()) detail::throw_position_out_of_range(position, all.size());
    return all[static_cast<std::size_t>(position)];
  }

  // Throws InvalidArgument when a pmap consumed the values: they were passed with std::move.
  const std::vector<T>& values() const {
    if (!donated_to_.empty()) detail::throw_donated(donated_to_);
    return values_;
  }

  auto begin() const { return values().begin(); }
  auto end() const { return values().end(); }

  // One tree in which each tensor holds all positions: along the axis of out_axes (a new dimension, 0 by default).
  // Leaves whose axis is none are compared bit for bit and returned once, and numbers are those of position 0.
  //
  // Throws ShapeError when shapes or dtypes differ, InvalidArgument when values that should agree do not, TreeError when
  // out_axes is no prefix of T; each names the leaf.
  T stack(std::source_location site = std::source_location::current()) const {
    T result = (*this)[0];
    std::vector<std::vector<at::Tensor>> leaves;
    for (const T& value : values_) leaves.push_back(tree::flatten(value));
    std::size_t next = 0;
    tree::for_each(
        [&](const tree::Path& path, auto& leaf) {
          if constexpr (tree::TensorLeaf<std::remove_cvref_t<decltype(leaf)>>) {
            std::vector<at::Tensor> column;
            for (const auto& row : leaves) column.push_back(row[next]);
            leaf = detail::join_leaf(column, out_axes_.at(path, "out_axes", site), path.text());
            ++next;
          }
        },
        result);
    return result;
  }

  // The value of position 0, for values of which every device holds the same.
  const T& unreplicate() const { return (*this)[0]; }

  const Axes& out_axes() const noexcept { return out_axes_; }

  // Marks the values as consumed by `call`; reading them throws afterwards. For pmap.
  void donate(std::string call) {
    values_.clear();
    donated_to_ = std::move(call);
  }

 private:
  std::vector<T> values_;
  Axes out_axes_ = 0;
  std::string donated_to_;
};

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
      std::vector<Value> values;
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
  std::vector<T> values;
  values.reserve(on.size());
  for (std::size_t i = 0; i < on.size(); ++i) {
    values.push_back(tree::map([](const at::Tensor& t) { return detail::clone_leaf(t); }, tree));
  }
  return Sharded<T>(std::move(values));
}

}  // namespace brigade
