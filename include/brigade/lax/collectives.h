// Collectives by axis name, called inside the body of a pmap. Each takes a tree and returns one of the same type.
//
// Semantics are those of jax.lax, and so are the gradients: the transpose of the linear map that the whole pmap is.
// Within one call all tensors of the tree travel together (in pmean integers apart from the others). Every device must call the same collectives in the same
// order with the same shapes and dtypes; otherwise all of them throw CollectiveMismatch, which prints both sides.
//
// All throw AxisError when `axis` is not in scope (the message lists what is), TreeError when a tensor of the tree is
// undefined, and InvalidArgument for a dtype or layout that cannot be reduced. Sums are taken in one fixed binary tree
// over positions, so their bits depend on nothing but the values.
//
// A reduction of a temporary, or of what is passed with std::move, works in the memory of its tensors where nobody else
// holds them: lax::pmean(grad(loss)(p, x), "devices") makes no copy.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <source_location>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "brigade/lax/leaves.h"
#include "brigade/runtime/axis.h"
#include "brigade/tree/tree.h"

namespace brigade::lax {

using Site = std::source_location;

// This device's position on the axis, from 0.
std::int64_t axis_index(std::string_view axis, Site site = Site::current());

// The number of devices on the axis.
std::int64_t axis_size(std::string_view axis, Site site = Site::current());

// Sum over the axis. Tensors of any shape and dtype; bool is summed as int32; float16 and bfloat16 are summed in float32
// and rounded once; integers wrap. Numbers in the tree are summed too. Gradient: psum.
template <class T>
requires tree::Tree<std::remove_cvref_t<T>> std::remove_cvref_t<T> psum(T&& tree, std::string_view axis,
                                                                        Site site = Site::current()) {
  static_assert(!detail::kHasBools<std::remove_cvref_t<T>>,
                "the sum of bools is no bool: make it an int, or a tensor, first");
  return detail::map_together(
      std::forward<T>(tree), "psum", {.axis = std::string(axis), .site = site},
      [&](auto tensors) { return detail::psum(find_axis(axis, site), std::move(tensors), site); });
}

// Sum over the axis divided by its size. Floating sums are divided once, where they are reduced; integers and bool are summed
// exactly (as int64), divided in float64, and become float32. Gradient: pmean.
template <class T>
requires tree::Tree<std::remove_cvref_t<T>> std::remove_cvref_t<T> pmean(T&& tree, std::string_view axis,
                                                                         Site site = Site::current()) {
  static_assert(!detail::kHasIntegers<std::remove_cvref_t<T>>,
                "the mean of an integer is none: make it a double, or a tensor, first");
  return detail::map_together(
      std::forward<T>(tree), "pmean", {.axis = std::string(axis), .site = site},
      [&](auto tensors) { return detail::pmean(find_axis(axis, site), std::move(tensors), site); });
}

// Largest over the axis, element by element; a NaN wins. Has no gradient: asking for one throws InvalidArgument.
template <class T>
requires tree::Tree<std::remove_cvref_t<T>> std::remove_cvref_t<T> pmax(T&& tree, std::string_view axis,
                                                                        Site site = Site::current()) {
  return detail::map_together(
      std::forward<T>(tree), "pmax", {.axis = std::string(axis), .site = site},
      [&](auto tensors) { return detail::pmax(find_axis(axis, site), std::move(tensors), site); });
}

// Smallest over the axis, as pmax.
template <class T>
requires tree::Tree<std::remove_cvref_t<T>> std::remove_cvref_t<T> pmin(T&& tree, std::string_view axis,
                                                                        Site site = Site::current()) {
  return detail::map_together(
      std::forward<T>(tree), "pmin", {.axis = std::string(axis), .site = site},
      [&](auto tensors) { return detail::pmin(find_axis(axis, site), std::move(tensors), site); });
}

struct AllGatherOptions {
  std::int64_t axis = 0;  // where the values go; negative counts from the end of the result
  bool tiled = false;     // false: a new dimension of size N; true: concatenation along an existing one
};

// Every device's value, in order of position. Tensors of shape s become s with a dimension N put in at `options.axis`, or
// with that dimension N times as long when tiled. Gradient: the sum over devices of each device's slice (psum_scatter).
// Throws ShapeError when `options.axis` is out of range.
template <class T>
requires tree::Tree<std::remove_cvref_t<T>> std::remove_cvref_t<T> all_gather(T&& tree, std::string_view axis,
                                                                              AllGatherOptions options = {},
                                                                              Site site = Site::current()) {
  static_assert(!detail::kHasNumbers<std::remove_cvref_t<T>>,
                "all_gather makes a number a tensor: wrap it in torch::tensor() first");
  return detail::map_together(
      std::forward<T>(tree), "all_gather", {.axis = std::string(axis), .site = site}, [&](auto tensors) {
        return detail::all_gather(find_axis(axis, site), std::move(tensors), options.axis, options.tiled, site);
      });
}

}  // namespace brigade::lax
