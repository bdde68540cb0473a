// Pytrees over C++ values: flatten, unflatten, map.
//
//   struct Params { torch::Tensor w, b; };
//   Params next = tree::map([](auto p, auto g) { return p - 0.1 * g; }, params, grads);
//
// The model is JAX's pytrees; see traits.h for which types are leaves, nodes or static.
#pragma once

#include <ATen/core/Tensor.h>

#include <span>
#include <string>
#include <vector>

#include "brigade/tree/walk.h"

namespace brigade::tree {

// Calls f(path, leaf, leaves of the others...) for each leaf (tensor or number), in order. Leaves of non-const trees
// may be assigned. Throws TreeError when the trees' structures differ.
template <class F, class First, class... Rest>
void for_each(F&& f, First&& first, Rest&&... rest) {
  Path path;
  walk(path, f, first, rest...);
}

// The tensors of `tree`, in order. Handles are copied, data is not. Numbers stay in the tree.
template <Tree T>
std::vector<at::Tensor> flatten(const T& tree) {
  std::vector<at::Tensor> tensors;
  for_each(
      [&](const Path&, const auto& leaf) {
        if constexpr (TensorLeaf<std::remove_cvref_t<decltype(leaf)>>) tensors.push_back(leaf);
      },
      tree);
  return tensors;
}

// The paths of flatten's tensors, in the same order.
template <Tree T>
std::vector<std::string> paths(const T& tree) {
  std::vector<std::string> result;
  for_each(
      [&](const Path& path, const auto& leaf) {
        if constexpr (TensorLeaf<std::remove_cvref_t<decltype(leaf)>>) result.push_back(path.text());
      },
      tree);
  return result;
}

// `like` with its tensors replaced, in order; numbers and static values are those of `like`.
// Throws TreeError when there are more or fewer tensors than places.
template <Tree T>
T unflatten(const T& like, std::span<const at::Tensor> tensors) {
  T result = like;
  std::size_t used = 0;
  for_each(
      [&](const Path&, auto& leaf) {
        if constexpr (TensorLeaf<std::remove_cvref_t<decltype(leaf)>>) {
          if (used < tensors.size()) leaf = tensors[used];
          ++used;
        }
      },
      result);
  if (used != tensors.size()) throw_leaf_count_mismatch(used, tensors.size());
  return result;
}

// `first` with every leaf replaced by f(leaf, leaves of rest...). A number that f does not take stays as it is in
// `first`. Throws TreeError when the structures differ.
template <class F, Tree First, Tree... Rest>
First map(F&& f, const First& first, const Rest&... rest) {
  First result = first;
  for_each(
      [&](const Path&, auto& out, const auto&... leaves) {
        using Out = std::remove_cvref_t<decltype(out)>;
        if constexpr (TensorLeaf<Out>) {
          out = f(leaves...);
        } else if constexpr (std::is_invocable_r_v<Out, F&, decltype(leaves)...>) {
          out = static_cast<Out>(f(leaves...));
        }
      },
      result, first, rest...);
  return result;
}

// Throws TreeError, with the path, unless the trees have one structure: lengths, keys, engaged optionals.
template <class First, class... Rest>
void require_same_structure(const First& first, const Rest&... rest) {
  for_each([](const Path&, const auto&...) {}, first, rest...);
}

}  // namespace brigade::tree
