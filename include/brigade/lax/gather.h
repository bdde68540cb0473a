// all_gather and psum_scatter, each the other's transpose. What holds for all collectives is said in collectives.h.
#pragma once

#include "brigade/lax/leaves.h"

namespace brigade::lax {

namespace detail {

// Where the values of several devices lie in one tensor: along a dimension of their own, or one after the other.
struct Layout {
  std::int64_t dim = 0;  // negative counts from the end of that tensor
  bool tiled = false;
};

Tensors all_gather(const Invocation& call, const Tensors& tensors, Layout layout);
Tensors psum_scatter(const Invocation& call, const Tensors& tensors, Layout layout);

}  // namespace detail

struct AllGatherOptions {
  std::int64_t axis = 0;  // where the values go; negative counts from the end of the result
  bool tiled = false;     // false: a new dimension of size N; true: concatenation along an existing one
  AxisIndexGroups axis_index_groups = {};  // equally large
};

// Every device's value, in order of rank. Tensors of shape s, of any dtype, become s with a dimension N put in at
// `options.axis`, or with that dimension N times as long when tiled. Gradient: psum_scatter.
// Throws ShapeError when `options.axis` is out of range.
template <AnyTree T>
TreeOf<T> all_gather(T&& tree, const AxisNames& axis, const AllGatherOptions& options = {},
                     Site site = Site::current()) {
  static_assert(!detail::kHasNumbers<T>, "all_gather makes a number a tensor: wrap it in torch::tensor() first");
  auto call = detail::enter("all_gather", axis, options.axis_index_groups, site, detail::GroupSizes::kEqual);
  return detail::map_together(std::forward<T>(tree), std::move(call), detail::all_gather,
                              detail::Layout{options.axis, options.tiled});
}

struct PsumScatterOptions {
  std::int64_t dim = 0;  // which dimension is scattered; negative counts from the end
  bool tiled = false;    // false: it has size N and goes; true: N divides it, and it becomes that much shorter
  AxisIndexGroups axis_index_groups = {};  // equally large
};

// The sum over the axis, of which every device keeps its own slice along `options.dim`: device i what psum would give at
// index i, or the i-th of N equal parts when tiled. Dtypes as in psum. Gradient: all_gather.
// Throws ShapeError when the dimension is out of range, or its size does not fit.
template <AnyTree T>
TreeOf<T> psum_scatter(T&& tree, const AxisNames& axis, const PsumScatterOptions& options = {},
                       Site site = Site::current()) {
  static_assert(!detail::kHasNumbers<T>, "psum_scatter takes tensors apart, and a number has no parts");
  auto call = detail::enter("psum_scatter", axis, options.axis_index_groups, site, detail::GroupSizes::kEqual);
  return detail::map_together(std::forward<T>(tree), std::move(call), detail::psum_scatter,
                              detail::Layout{options.dim, options.tiled});
}

}  // namespace brigade::lax
