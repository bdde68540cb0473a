// Collectives by axis name, called inside the body of a pmap. Each takes a tree and returns one of the same type.
//
//   grads = lax::pmean(std::move(grads), "devices");
//   rows = lax::all_gather(x, "devices", {.axis = 1, .tiled = true});
//   sums = lax::psum(x, {"host", "device"}, {.axis_index_groups = {{0, 2}, {1, 3}}});
//
// Semantics are those of jax.lax, and so are the gradients, to any order: the transpose of the linear map that the whole
// pmap is. So the gradient of a psum is a psum, and the gradient of psum(loss) in the body is N times that of the loss;
// whoever averages means pmean.
//
// An axis is one name or several, and a collective runs among the devices that differ in those axes only. N below is
// their number, or that of the device's own group when there are axis_index_groups.
//
// All tensors of the tree travel together in one meeting (pargmax and pargmin: two). Every device calls the same
// collectives in the same order with the same shapes and dtypes; otherwise all of them throw CollectiveMismatch, which
// prints both sides. So do those that wait for a device whose body has returned. When no device makes progress for the
// seconds of BRIGADE_DEADLINE (default 60), all throw DeadlineExceeded. Sums are taken in one fixed binary tree over
// ranks, so their bits depend on nothing but the values.
//
// All throw AxisError when an axis is not in scope (the message lists what is); InvalidArgument when an axis stands twice,
// when axis_index_groups do not hold every rank exactly once, and for a dtype or layout that cannot travel; TreeError when
// a tensor of the tree is undefined. Messages name the leaf, the device and the call.
//
// A reduction of a temporary, or of what is passed with std::move, works in the memory of its tensors where nobody else
// holds them: lax::pmean(grad(loss)(p, x), "devices") makes no copy.
#pragma once

#include "brigade/lax/exchange.h"
#include "brigade/lax/gather.h"
#include "brigade/lax/invocation.h"
#include "brigade/lax/mean.h"
#include "brigade/lax/reduce.h"

namespace brigade::lax {

// This device's rank on the axis, from 0; on several axes row-major in the order listed.
std::int64_t axis_index(const AxisNames& axis, Site site = Site::current());

// The number of devices on the axis.
std::int64_t axis_size(const AxisNames& axis, Site site = Site::current());

}  // namespace brigade::lax
