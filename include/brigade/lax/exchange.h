// all_to_all, pswapaxes, ppermute, pshuffle, pbroadcast: values change places, and nothing is computed. Tensors of any
// dtype. What holds for all collectives is said in collectives.h.
#pragma once

#include "brigade/lax/gather.h"
#include "brigade/lax/leaves.h"

namespace brigade::lax {

using RankPairs = std::vector<comm::RankPair>;  // (source, destination)

namespace detail {

Tensors all_to_all(const Invocation& call, const Tensors& tensors, Layout split, Layout concat);
Tensors ppermute(const Invocation& call, const Tensors& tensors, const RankPairs& pairs);
Tensors pshuffle(const Invocation& call, const Tensors& tensors, const std::vector<int>& perm);
Tensors pbroadcast(const Invocation& call, const Tensors& tensors, int source);

}  // namespace detail

struct AllToAllOptions {
  std::int64_t split = 0;   // the dimension whose parts go to the devices; negative counts from the end
  std::int64_t concat = 0;  // where the parts that come are put together; negative counts from the end of the result
  bool tiled = false;  // false: `split` has size N and goes, a dimension N appears at `concat`; true: `split` becomes N
                       // times shorter, `concat` N times longer
  AxisIndexGroups axis_index_groups = {};  // equally large
};

// Part i of this device's tensor goes to device i, and what comes is put together in order of rank. Gradient: all_to_all
// with split and concat swapped. Throws ShapeError when a dimension is out of range, or the size of `split` does not fit.
template <AnyTree T>
TreeOf<T> all_to_all(T&& tree, const AxisNames& axis, const AllToAllOptions& options = {},
                     Site site = Site::current()) {
  static_assert(!detail::kHasNumbers<T>, "all_to_all takes tensors apart, and a number has no parts");
  auto call = detail::enter("all_to_all", axis, options.axis_index_groups, site, detail::GroupSizes::kEqual);
  return detail::map_together(std::forward<T>(tree), std::move(call), detail::all_to_all,
                              detail::Layout{options.split, options.tiled},
                              detail::Layout{options.concat, options.tiled});
}

// Swaps the axis with dimension `dim`, whose size is N: all_to_all with split and concat `dim`. Gradient: pswapaxes.
template <AnyTree T>
TreeOf<T> pswapaxes(T&& tree, const AxisNames& axis, std::int64_t dim, const GroupOptions& options = {},
                    Site site = Site::current()) {
  static_assert(!detail::kHasNumbers<T>, "pswapaxes takes tensors apart, and a number has no parts");
  auto call = detail::enter("pswapaxes", axis, options.axis_index_groups, site, detail::GroupSizes::kEqual);
  return detail::map_together(std::forward<T>(tree), std::move(call), detail::all_to_all, detail::Layout{dim, false},
                              detail::Layout{dim, false});
}

// The value of each source goes to its destination; who is no destination gets zeros. Ranks are those of the axis, or of
// each group. Gradient: ppermute with the pairs turned round.
// Throws InvalidArgument when a rank is out of range, or stands twice among the sources or among the destinations.
template <AnyTree T>
TreeOf<T> ppermute(T&& tree, const AxisNames& axis, const RankPairs& pairs, const GroupOptions& options = {},
                   Site site = Site::current()) {
  auto call = detail::enter("ppermute", axis, options.axis_index_groups, site);
  return detail::map_together(std::forward<T>(tree), std::move(call), detail::ppermute, pairs);
}

// Device i gets the value of device perm[i]. Gradient: the inverse shuffle.
// Throws InvalidArgument unless `perm` holds each rank of the axis, or of each group, once.
template <AnyTree T>
TreeOf<T> pshuffle(T&& tree, const AxisNames& axis, const std::vector<int>& perm, const GroupOptions& options = {},
                   Site site = Site::current()) {
  auto call = detail::enter("pshuffle", axis, options.axis_index_groups, site);
  return detail::map_together(std::forward<T>(tree), std::move(call), detail::pshuffle, perm);
}

// Everyone gets the value of `source`, a rank on the axis or in each group. Gradient: the sum at the source, zero
// elsewhere. Throws InvalidArgument when `source` is out of range.
template <AnyTree T>
TreeOf<T> pbroadcast(T&& tree, const AxisNames& axis, int source, const GroupOptions& options = {},
                     Site site = Site::current()) {
  auto call = detail::enter("pbroadcast", axis, options.axis_index_groups, site);
  return detail::map_together(std::forward<T>(tree), std::move(call), detail::pbroadcast, source);
}

}  // namespace brigade::lax
