// What a type is to a tree: a leaf, a static value, or a node with children.
//
// Trees are C++ values as they are, with nothing to register:
//   leaves   torch::Tensor; numbers (arithmetic types)
//   nodes    aggregates (by Boost.PFR), std::tuple, std::pair, std::array, std::vector, std::map by string,
//            std::optional
//   static   strings, enums, std::monostate, std::vector<bool>, and what specialises `is_static`: carried along,
//            never mapped
#pragma once

#include <array>
#include <boost/pfr/core.hpp>
#include <concepts>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace at {
class Tensor;
}

namespace brigade::tree {

// Specialise to true for a type of yours that holds no tensors and is to be carried along as one value.
template <class T>
inline constexpr bool is_static = false;

namespace detail {

template <class T, template <class...> class Template>
inline constexpr bool is_instance = false;
template <template <class...> class Template, class... Args>
inline constexpr bool is_instance<Template<Args...>, Template> = true;

template <class T>
inline constexpr bool is_std_array = false;
template <class T, std::size_t N>
inline constexpr bool is_std_array<std::array<T, N>> = true;

template <class T>
inline constexpr bool is_string_map = false;
template <class V, class... Rest>
inline constexpr bool is_string_map<std::map<std::string, V, Rest...>> = true;

}  // namespace detail

template <class T>
concept TensorLeaf = std::same_as<T, at::Tensor>;

template <class T>
concept NumberLeaf = std::is_arithmetic_v<T>;

template <class T>
concept Leaf = TensorLeaf<T> || NumberLeaf<T>;

template <class T>
concept StaticValue = std::is_enum_v<T> || std::same_as<T, std::string> || std::same_as<T, std::string_view> ||
    std::same_as<T, const char*> || std::same_as<T, std::monostate> || std::same_as<T, std::vector<bool>> ||
    is_static<T>;

template <class T>
concept VectorNode = detail::is_instance<T, std::vector> && !StaticValue<T>;

template <class T>
concept MapNode = detail::is_string_map<T>;

template <class T>
concept OptionalNode = detail::is_instance<T, std::optional>;

template <class T>
concept TupleNode = detail::is_instance<T, std::tuple> || detail::is_instance<T, std::pair> || detail::is_std_array<T>;

template <class T>
concept AggregateNode = std::is_class_v<T> && std::is_aggregate_v<T> && !TupleNode<T> && !StaticValue<T>;

// A node whose number of children is known from its type.
template <class T>
concept FixedNode = TupleNode<T> || AggregateNode<T>;

namespace detail {

template <class T>
constexpr std::size_t child_count() {
  if constexpr (TupleNode<T>) {
    return std::tuple_size_v<T>;
  } else {
    return boost::pfr::tuple_size_v<T>;
  }
}

template <std::size_t I, class T>
decltype(auto) child(T& node) {
  if constexpr (TupleNode<std::remove_const_t<T>>) {
    return std::get<I>(node);
  } else {
    return boost::pfr::get<I>(node);
  }
}

template <std::size_t I, class T>
using ChildType = std::remove_cvref_t<decltype(child<I>(std::declval<T&>()))>;

template <class T>
constexpr bool is_tree();

template <class T, std::size_t... I>
constexpr bool children_are_trees(std::index_sequence<I...>) {
  return (is_tree<ChildType<I, T>>() && ...);
}

template <class T>
constexpr bool is_tree() {
  if constexpr (Leaf<T> || StaticValue<T>) {
    return true;
  } else if constexpr (VectorNode<T> || OptionalNode<T>) {
    return is_tree<typename T::value_type>();
  } else if constexpr (MapNode<T>) {
    return is_tree<typename T::mapped_type>();
  } else if constexpr (FixedNode<T>) {
    return children_are_trees<T>(std::make_index_sequence<child_count<T>()>{});
  } else {
    return false;
  }
}

template <class T>
constexpr bool has_tensors();

template <class T, std::size_t... I>
constexpr bool children_have_tensors(std::index_sequence<I...>) {
  return (has_tensors<ChildType<I, T>>() || ...);
}

template <class T>
constexpr bool has_tensors() {
  if constexpr (TensorLeaf<T>) {
    return true;
  } else if constexpr (VectorNode<T> || OptionalNode<T>) {
    return has_tensors<typename T::value_type>();
  } else if constexpr (MapNode<T>) {
    return has_tensors<typename T::mapped_type>();
  } else if constexpr (FixedNode<T> && !StaticValue<T>) {
    return children_have_tensors<T>(std::make_index_sequence<child_count<T>()>{});
  } else {
    return false;
  }
}

}  // namespace detail

template <class T>
concept Tree = detail::is_tree<T>();

// Whether T can hold a tensor; what cannot is passed to every device as it is.
template <class T>
inline constexpr bool kHasTensors = detail::has_tensors<T>();

}  // namespace brigade::tree
