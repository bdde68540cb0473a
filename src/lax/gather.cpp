// all_gather, and psum_scatter as its transpose.
#include <ATen/ATen.h>
#include <fmt/format.h>

#include "brigade/base/error.h"
#include "brigade/lax/leaves.h"
#include "linear_node.h"
#include "transport.h"

namespace brigade::lax::detail {
namespace {

Tensors scatter_leading(const AxisPlace& place, const Tensors& tensors, std::source_location site);

at::Tensor empty_of(const at::Tensor& like, std::vector<std::int64_t> sizes) {
  return at::empty(sizes, like.options());
}

// x on each device becomes (N, *x) on all.
Tensors gather_leading(const AxisPlace& place, const Tensors& tensors, std::source_location site) {
  Tensors inputs, results;
  std::vector<comm::Piece> pieces;
  for (const at::Tensor& tensor : tensors) {
    inputs.push_back(plain(tensor, "all_gather", place, site));
    std::vector<std::int64_t> sizes = tensor.sizes().vec();
    sizes.insert(sizes.begin(), place.axis->size());
    results.push_back(empty_of(inputs.back(), sizes));
    pieces.push_back(piece(inputs.back(), results.back()));
  }
  place.group().all_gather(pieces, {.tag = "all_gather", .site = site});
  if (needs_recording(tensors)) {
    record_linear("all_gather", tensors, results,
                  [place, site](const Tensors& cotangents) { return scatter_leading(place, cotangents, site); });
  }
  return results;
}

// (N, *x) on each device becomes, on device i, the sum over devices of slice i.
Tensors scatter_leading(const AxisPlace& place, const Tensors& tensors, std::source_location site) {
  Tensors inputs, results;
  std::vector<comm::Piece> pieces;
  for (const at::Tensor& tensor : tensors) {
    at::Tensor in = plain(tensor, "psum_scatter", place, site);
    if (in.is_complex()) in = at::view_as_real(in);
    inputs.push_back(in.to(reduced_as(in.scalar_type())));
    results.push_back(empty_of(inputs.back(), inputs.back().sizes().slice(1).vec()));
    pieces.push_back(piece(inputs.back(), results.back()));
  }
  place.group().reduce_scatter({.op = comm::ReduceOp::kSum}, pieces, {.tag = "psum_scatter", .site = site});
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (tensors[i].is_complex()) results[i] = at::view_as_complex(results[i]);
    results[i] = results[i].to(tensors[i].scalar_type());
  }
  if (needs_recording(tensors)) {
    record_linear("psum_scatter", tensors, results,
                  [place, site](const Tensors& cotangents) { return gather_leading(place, cotangents, site); });
  }
  return results;
}

}  // namespace

Tensors all_gather(const AxisPlace& place, Tensors tensors, std::int64_t dim, bool tiled, std::source_location site) {
  std::vector<std::int64_t> dims;
  for (const at::Tensor& tensor : tensors) {
    const std::int64_t rank = tensor.dim() + (tiled ? 0 : 1);
    if (dim < -rank || dim >= rank) {
      throw ShapeError(fmt::format("all_gather along axis {} of a tensor of shape {}{}: the axis is from {} to {}", dim,
                                   c10::str(tensor.sizes()), tiled ? ", tiled" : "", -rank, rank - 1),
                       {.axis = place.axis->name(), .device = place.position, .site = site});
    }
    dims.push_back(dim < 0 ? dim + rank : dim);
  }
  Tensors results = gather_leading(place, tensors, site);
  for (std::size_t i = 0; i < results.size(); ++i) {
    at::Tensor moved = results[i].movedim(0, dims[i]);
    // Tiled: dimension `dim` of every value follows the one of devices, and the two become one.
    results[i] = tiled ? moved.flatten(dims[i], dims[i] + 1) : moved;
    results[i] = results[i].contiguous();
  }
  return results;
}

}  // namespace brigade::lax::detail
