// Between trees and the compiled collectives, which work on lists of tensors.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/scalar_tensor.h>

#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "brigade/lax/invocation.h"
#include "brigade/tree/tree.h"

namespace brigade::lax {

// A tree, passed as an rvalue or not, and its type.
template <class T>
concept AnyTree = tree::Tree<std::remove_cvref_t<T>>;
template <class T>
using TreeOf = std::remove_cvref_t<T>;

namespace detail {

using Tensors = std::vector<at::Tensor>;

// Throws TreeError for an undefined leaf, InvalidArgument for one that is not on the CPU, not dense, or of a dtype that
// cannot travel.
void require_transportable(const Invocation& call, const Tensors& leaves);

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
inline constexpr bool kHasNumbers = has_numbers<TreeOf<T>, std::is_arithmetic>();
template <class T>
inline constexpr bool kHasIntegers = has_numbers<TreeOf<T>, std::is_integral>();
template <class T>
struct IsBool : std::is_same<T, bool> {};
template <class T>
inline constexpr bool kHasBools = has_numbers<TreeOf<T>, IsBool>();

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

// Unsigned numbers of 64 bits travel as signed ones, among which this keeps their order; done twice it undoes itself.
template <AnyTree T>
TreeOf<T> with_signed_order(T&& tree) {
  TreeOf<T> out = std::forward<T>(tree);
  tree::for_each(
      [](const tree::Path&, auto& leaf) {
        using Leaf = TreeOf<decltype(leaf)>;
        if constexpr (std::is_unsigned_v<Leaf> && sizeof(Leaf) == sizeof(std::uint64_t)) leaf ^= Leaf{1} << 63;
      },
      out);
  return out;
}

// `tree` with its leaves replaced by operation(call, all leaves as tensors in order, arguments...), called once. The
// tensors of an rvalue are moved out, so that an operation which finds itself their only holder may reuse their memory.
template <AnyTree T, class Operation, class... Arguments>
TreeOf<T> map_together(T&& tree, Invocation call, const Operation& operation, const Arguments&... arguments) {
  TreeOf<T> out = std::forward<T>(tree);
  Tensors leaves;
  tree::for_each(
      [&](const tree::Path&, auto& leaf) {
        if constexpr (tree::TensorLeaf<TreeOf<decltype(leaf)>>) {
          leaves.push_back(std::move(leaf));
        } else {
          leaves.push_back(to_tensor(leaf));
        }
      },
      out);
  const auto path_of = [&out](std::size_t number) {
    std::string text;
    tree::for_each(
        [&](const tree::Path& path, const auto&) {
          if (number-- == 0) text = path.text();
        },
        out);
    return text;
  };
  call.path_of = path_of;
  require_transportable(call, leaves);
  const Tensors results = operation(std::as_const(call), std::move(leaves), arguments...);
  std::size_t next = 0;
  tree::for_each(
      [&](const tree::Path&, auto& leaf) {
        using Value = TreeOf<decltype(leaf)>;
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

}  // namespace detail
}  // namespace brigade::lax
