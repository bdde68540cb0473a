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

// x on each device becomes (N, *x) on all.
Tensors gather_leading(const AxisPlace& place, const Tensors& tensors, std::string_view tag,
                       std::source_location site) {
  Tensors inputs, results;
  std::vector<comm::Piece> pieces;
  for (const at::Tensor& tensor : tensors) {
    const at::Tensor& in = inputs.emplace_back(plain(tensor, "all_gather", place, site));
    std::vector<std::int64_t> sizes = in.sizes().vec();
    sizes.insert(sizes.begin(), place.axis->size());
    results.push_back(at::empty(sizes, in.options()));
    pieces.push_back(piece(in, results.back(), tensor));
  }
  place.group().all_gather(pieces, {.tag = tag, .site = site});
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
    const at::Tensor data = plain(tensor, "psum_scatter", place, site);
    results.push_back(at::empty(data.sizes().slice(1), data.is_complex()
                                                           ? data.options()
                                                           : data.options().dtype(reduced_as(data.scalar_type()))));
    inputs.push_back(data.is_complex() ? at::view_as_real(data) : data.to(reduced_as(data.scalar_type())));
    pieces.push_back(
        piece(inputs.back(), data.is_complex() ? at::view_as_real(results.back()) : results.back(), tensor));
  }
  place.group().reduce_scatter({.op = comm::ReduceOp::kSum}, pieces, {.tag = "psum_scatter in backward", .site = site});
  for (std::size_t i = 0; i < results.size(); ++i) results[i] = results[i].to(tensors[i].scalar_type());
  if (needs_recording(tensors)) {
    record_linear("psum_scatter", tensors, results, [place, site](const Tensors& cotangents) {
      return gather_leading(place, cotangents, "all_gather in backward", site);
    });
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
  Tensors results = gather_leading(place, tensors,
                                   needs_recording(tensors) ? "all_gather of what requires grad" : "all_gather", site);
  for (std::size_t i = 0; i < results.size(); ++i) {
    at::Tensor moved = results[i].movedim(0, dims[i]);
    // Tiled: dimension `dim` of every value follows the one of devices, and the two become one.
    results[i] = tiled ? moved.flatten(dims[i], dims[i] + 1) : moved;
    results[i] = results[i].contiguous();
  }
  return results;
}

}  // namespace brigade::lax::detail
