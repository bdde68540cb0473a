#include "layout.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include "brigade/base/error.h"

namespace brigade::lax::detail {
namespace {

std::string along(const Invocation& call, const at::Tensor& tensor, Layout layout) {
  return fmt::format("{} along dimension {} of a tensor of shape {}{}", call.name, layout.dim, c10::str(tensor.sizes()),
                     layout.tiled ? ", tiled" : "");
}

}  // namespace

std::int64_t checked_dim(const Invocation& call, const at::Tensor& tensor, Layout layout, std::int64_t rank,
                         std::size_t leaf) {
  if (layout.dim < -rank || layout.dim >= rank) {
    throw ShapeError(
        fmt::format("{}: {}", along(call, tensor, layout),
                    rank == 0 ? "a scalar has none" : fmt::format("the dimension is from {} to {}", -rank, rank - 1)),
        call.context(leaf));
  }
  return layout.dim < 0 ? layout.dim + rank : layout.dim;
}

std::int64_t scattered_dim(const Invocation& call, const at::Tensor& tensor, Layout layout, std::size_t leaf) {
  const std::int64_t dim = checked_dim(call, tensor, layout, tensor.dim(), leaf);
  const std::int64_t size = tensor.size(dim);
  if (layout.tiled ? size % call.size() != 0 : size != call.size()) {
    throw ShapeError(fmt::format("{}: its size {} is not {} {}, the number of devices{}", along(call, tensor, layout),
                                 size, layout.tiled ? "a multiple of" : "equal to", call.size(),
                                 !layout.tiled && size % call.size() == 0 ? "; .tiled takes multiples of it" : ""),
                     call.context(leaf));
  }
  return dim;
}

at::Tensor to_blocks(const at::Tensor& tensor, std::int64_t dim, std::int64_t count, bool tiled) {
  if (!tiled) return tensor.movedim(dim, 0).contiguous();
  std::vector<std::int64_t> sizes = tensor.sizes().vec();
  sizes[static_cast<std::size_t>(dim)] /= count;
  sizes.insert(sizes.begin() + dim, count);
  return tensor.view(sizes).movedim(dim, 0).contiguous();
}

at::Tensor from_blocks(const at::Tensor& blocks, std::int64_t dim, bool tiled) {
  const at::Tensor moved = blocks.movedim(0, dim).contiguous();
  std::vector<std::int64_t> sizes = moved.sizes().vec();
  if (tiled) {
    // The dimension that comes next in a block continues the one of devices.
    sizes[static_cast<std::size_t>(dim)] *= sizes[static_cast<std::size_t>(dim) + 1];
    sizes.erase(sizes.begin() + dim + 1);
  }
  return at::_unsafe_view(moved, sizes);
}

std::string described(Layout layout) {
  if (layout.dim == 0) return layout.tiled ? "tiled" : "";
  return fmt::format("dim {}{}", layout.dim, layout.tiled ? ", tiled" : "");
}

}  // namespace brigade::lax::detail
