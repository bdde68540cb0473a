#include "brigade/transform/sharded.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <cstring>

namespace brigade::detail {
namespace {

bool same_bits(const at::Tensor& a, const at::Tensor& b) {
  if (a.is_same(b)) return true;
  const at::Tensor x = a.detach().contiguous(), y = b.detach().contiguous();
  return x.scalar_type() == y.scalar_type() && std::memcmp(x.data_ptr(), y.data_ptr(), x.nbytes()) == 0;
}

}  // namespace

at::Tensor join_leaf(const std::vector<at::Tensor>& values, std::optional<int> axis, const std::string& path) {
  for (std::size_t i = 1; i < values.size(); ++i) {
    if (values[i].sizes() != values[0].sizes()) {
      throw ShapeError(
          fmt::format(
              "position 0 holds shape {} and position {} holds {}: values of different shapes cannot be stacked; "
              "read them one by one with [i]",
              c10::str(values[0].sizes()), i, c10::str(values[i].sizes())),
          {.argument = path});
    }
    if (!axis && !same_bits(values[0], values[i])) {
      throw InvalidArgument(
          fmt::format("out_axes is none, and the devices do not agree: position {} differs from position 0. Reduce "
                      "the value over the axis first, or give it an axis",
                      i),
          {.argument = path});
    }
  }
  if (!axis) return values[0];
  const std::int64_t rank = values[0].dim() + 1;
  if (*axis < -rank || *axis >= rank) {
    throw ShapeError(fmt::format("out_axes {} for a result of shape {}: the axis is from {} to {}", *axis,
                                 c10::str(values[0].sizes()), -rank, rank - 1),
                     {.argument = path});
  }
  return at::stack(values, *axis);
}

void throw_donated(const std::string& donated_to) {
  throw InvalidArgument(
      fmt::format("this value was given away: it was passed with std::move to {}, which reused its memory. Use that "
                  "call's result, or pass it without std::move",
                  donated_to));
}

void throw_position_out_of_range(std::int64_t position, std::size_t size) {
  throw InvalidArgument(
      size == 0
          ? fmt::format("position {} of a Sharded that holds nothing: it was never given a value, or moved from",
                        position)
          : fmt::format("position {} of a Sharded over {} devices: positions are 0 to {}", position, size, size - 1));
}

}  // namespace brigade::detail
