// The one recursion over trees. Everything else in this room is a call of it.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "brigade/tree/field_name.h"
#include "brigade/tree/path.h"
#include "brigade/tree/traits.h"

namespace brigade::tree {

// Calls visit(path, leaf of first, leaf of rest...) for each leaf, in order of fields, elements and keys. The trees may
// be of different types with one structure; lengths, keys and engagement are compared on the way, and a difference
// throws TreeError with the path. Static values are passed over.
template <class Visit, class First, class... Rest>
void walk(const Path& path, Visit& visit, First& first, Rest&... rest);

namespace detail {

// The same size of every node, or TreeError.
template <class First, class... Rest>
void require_equal_sizes(const Path& path, std::string_view what, const First& first, const Rest&... rest) {
  [[maybe_unused]] const auto check = [&](const auto& other) {
    if (other.size() != first.size()) {
      throw_structure_mismatch(path, "one has " + std::to_string(first.size()) + " " + std::string(what) +
                                         ", another has " + std::to_string(other.size()));
    }
  };
  (check(rest), ...);
}

template <std::size_t I, class Visit, class First, class... Rest>
void walk_child(const Path& path, Visit& visit, First& first, Rest&... rest) {
  using Node = std::remove_const_t<First>;
  std::string_view name;
  if constexpr (AggregateNode<Node>) name = field_name<Node, I>();
  const Path below = path.below({.name = name, .index = I, .count = child_count<Node>()});
  walk(below, visit, child<I>(first), child<I>(rest)...);
}

template <class Visit, std::size_t... I, class... Nodes>
void walk_children(std::index_sequence<I...>, const Path& path, Visit& visit, Nodes&... nodes) {
  (walk_child<I>(path, visit, nodes...), ...);
}

template <class V, class Map>
auto& value_at(const Path& path, Map& map, const V& key) {
  const auto found = map.find(key);
  if (found == map.end()) throw_structure_mismatch(path, "one has the key \"" + key + "\", another has not");
  return found->second;
}

}  // namespace detail

template <class Visit, class First, class... Rest>
void walk(const Path& path, Visit& visit, First& first, Rest&... rest) {
  using Node = std::remove_const_t<First>;
  static_assert(
      Tree<Node>,
      "this type is no tree: trees are made of tensors, numbers, aggregates, tuple, pair, array, vector, map by "
      "string and optional; specialise brigade::tree::is_static<T> for a type that holds no tensors");
  if constexpr (StaticValue<Node>) {
    return;
  } else if constexpr (Leaf<Node>) {
    static_assert((Leaf<std::remove_const_t<Rest>> && ...),
                  "these trees differ: one has a leaf where another has a node");
    visit(path, first, rest...);
  } else if constexpr (FixedNode<Node>) {
    static_assert(((detail::child_count<Node>() == detail::child_count<std::remove_const_t<Rest>>()) && ...),
                  "these trees have different numbers of fields");
    detail::walk_children(std::make_index_sequence<detail::child_count<Node>()>{}, path, visit, first, rest...);
  } else if constexpr (VectorNode<Node>) {
    detail::require_equal_sizes(path, "elements", first, rest...);
    for (std::size_t i = 0; i < first.size(); ++i) {
      const Path below = path.below({.index = i, .count = first.size()});
      walk(below, visit, first[i], rest[i]...);
    }
  } else if constexpr (MapNode<Node>) {
    detail::require_equal_sizes(path, "keys", first, rest...);
    std::size_t index = 0;
    for (auto& [key, value] : first) {
      const Path below = path.below({.name = key, .index = index++, .count = first.size()});
      walk(below, visit, value, detail::value_at(path, rest, key)...);
    }
  } else if constexpr (OptionalNode<Node>) {
    if (((rest.has_value() != first.has_value()) || ...)) {
      throw_structure_mismatch(path, "one optional holds a value, another is empty");
    }
    if (first.has_value()) walk(path, visit, *first, (*rest)...);
  }
}

}  // namespace brigade::tree
