// Between trees and the compiled collectives, which work on lists of tensors.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/scalar_tensor.h>

#include <cstdint>
#include <source_location>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "brigade/base/error.h"
#include "brigade/runtime/axis.h"
#include "brigade/tree/tree.h"

namespace brigade::lax::detail {

using Tensors = std::vector<at::Tensor>;

// The collectives themselves; see collectives.h. Results are in the order of `tensors`.
Tensors psum(const AxisPlace& place, Tensors tensors, std::source_location site);
Tensors pmean(const AxisPlace& place, Tensors tensors, std::source_location site);
Tensors pmax(const AxisPlace& place, Tensors tensors, std::source_location site);
Tensors pmin(const AxisPlace& place, Tensors tensors, std::source_location site);
Tensors all_gather(const AxisPlace& place, Tensors tensors, std::int64_t dim, bool tiled, std::source_location site);

// Whether T holds number leaves, of which kind.
template <class T, template <class> class Kind>
constexpr bool has_numbers() {
  if constexpr (tree::NumberLeaf<T>) {
    return Kind<T>::value;
  } else if constexpr (tree::TensorLeaf<T> || tree::StaticValue<T>) {
    return false;
  } else if constexpr (tree::VectorNode<T> || tree::OptionalNode<T>) {
    return has_numbers<typename T::value_type, Kind>();
  } else if constexpr (tree::MapNode<T>) {
    return has_numbers<typename T::mapped_type, Kind>();
  } else {
    return []<std::size_t... I>(std::index_sequence<I...>) {
      return (has_numbers<tree::detail::ChildType<I, T>, Kind>() || ...);
    }
    (std::make_index_sequence<tree::detail::child_count<T>()>{});
  }
}

template <class T>
inline constexpr bool kHasNumbers = has_numbers<T, std::is_arithmetic>();
template <class T>
inline constexpr bool kHasIntegers = has_numbers<T, std::is_integral>();
template <class T>
struct IsBool : std::is_same<T, bool> {};
template <class T>
inline constexpr bool kHasBools = has_numbers<T, IsBool>();

// Numbers travel as tensors wide enough to hold them. They are not known to be the same on every device: axis_index is
// one.
template <class Number>
at::Tensor to_tensor(Number value) {
  if constexpr (std::is_integral_v<Number>) {
    return at::scalar_tensor(static_cast<std::int64_t>(value), at::kLong);
  } else {
    return at::scalar_tensor(static_cast<double>(value), at::kDouble);
  }
}

// `tree` with its leaves replaced by operation(all leaves as tensors, in order), called once. The tensors of an rvalue
// are moved out, so that an operation which finds itself their only holder may reuse their memory.
//
// `collective` and `context` are for messages.
template <class T, class Operation>
std::remove_cvref_t<T> map_together(T&& tree, std::string_view collective, ErrorContext context, Operation operation) {
  std::remove_cvref_t<T> out = std::forward<T>(tree);
  Tensors leaves;
  tree::for_each(
      [&](const tree::Path& path, auto& leaf) {
        if constexpr (tree::TensorLeaf<std::remove_cvref_t<decltype(leaf)>>) {
          if (!leaf.defined()) {
            context.argument = path.text();
            throw TreeError(std::string(collective) + " of an undefined tensor: give it a value first", context);
          }
          leaves.push_back(std::move(leaf));
        } else {
          leaves.push_back(to_tensor(leaf));
        }
      },
      out);
  const Tensors results = operation(std::move(leaves));
  std::size_t next = 0;
  tree::for_each(
      [&](const tree::Path&, auto& leaf) {
        using Value = std::remove_cvref_t<decltype(leaf)>;
        if constexpr (tree::TensorLeaf<Value>) {
          leaf = results[next++];
        } else {
          using Wide = std::conditional_t<std::is_integral_v<Value>, std::int64_t, double>;
          leaf = static_cast<Value>(results[next++].template item<Wide>());
        }
      },
      out);
  return out;
}

}  // namespace brigade::lax::detail
