// psum, pmax, pmin, pargmax, pargmin. What holds for all collectives is said in collectives.h.
#pragma once

#include "brigade/lax/leaves.h"

namespace brigade::lax {

namespace detail {

Tensors psum(const Invocation& call, Tensors tensors);
Tensors pmax(const Invocation& call, Tensors tensors);
Tensors pmin(const Invocation& call, Tensors tensors);
Tensors pargmax(const Invocation& call, Tensors tensors);
Tensors pargmin(const Invocation& call, Tensors tensors);

}  // namespace detail

// Sum over the axis. Tensors of any shape and dtype; bool is summed as int32; float16 and bfloat16 are summed in float32
// and rounded once; integers wrap. Numbers in the tree are summed too. Gradient: psum.
template <AnyTree T>
TreeOf<T> psum(T&& tree, const AxisNames& axis, const GroupOptions& options = {}, Site site = Site::current()) {
  static_assert(!detail::kHasBools<T>, "the sum of bools is no bool: make it an int, or a tensor, first");
  auto call = detail::enter("psum", axis, options.axis_index_groups, site);
  return detail::map_together(std::forward<T>(tree), std::move(call), detail::psum);
}

// Largest over the axis, element by element; a NaN wins. Complex numbers have no order: InvalidArgument. Has no gradient:
// asking for one throws InvalidArgument.
template <AnyTree T>
TreeOf<T> pmax(T&& tree, const AxisNames& axis, const GroupOptions& options = {}, Site site = Site::current()) {
  auto call = detail::enter("pmax", axis, options.axis_index_groups, site);
  return detail::with_signed_order(
      detail::map_together(detail::with_signed_order(std::forward<T>(tree)), std::move(call), detail::pmax));
}

// Smallest over the axis, as pmax.
template <AnyTree T>
TreeOf<T> pmin(T&& tree, const AxisNames& axis, const GroupOptions& options = {}, Site site = Site::current()) {
  auto call = detail::enter("pmin", axis, options.axis_index_groups, site);
  return detail::with_signed_order(
      detail::map_together(detail::with_signed_order(std::forward<T>(tree)), std::move(call), detail::pmin));
}

// The axis_index of the device that holds the largest, element by element, as int32 like JAX; the lowest of those that
// hold it, and of those that hold a NaN where there is one. Also with groups it counts along the axis. No gradient
// passes: an index does not change with its argument.
template <AnyTree T>
TreeOf<T> pargmax(T&& tree, const AxisNames& axis, const GroupOptions& options = {}, Site site = Site::current()) {
  static_assert(!detail::kHasBools<T>, "an index is no bool: make it an int, or a tensor, first");
  auto call = detail::enter("pargmax", axis, options.axis_index_groups, site);
  return detail::map_together(detail::with_signed_order(std::forward<T>(tree)), std::move(call), detail::pargmax);
}

// The same of the smallest.
template <AnyTree T>
TreeOf<T> pargmin(T&& tree, const AxisNames& axis, const GroupOptions& options = {}, Site site = Site::current()) {
  static_assert(!detail::kHasBools<T>, "an index is no bool: make it an int, or a tensor, first");
  auto call = detail::enter("pargmin", axis, options.axis_index_groups, site);
  return detail::map_together(detail::with_signed_order(std::forward<T>(tree)), std::move(call), detail::pargmin);
}

}  // namespace brigade::lax
