#include "brigade/transform/sharded.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <cstring>

namespace brigade::detail {
namespace {

bool same_bits(const at::Tensor& a, const at::Tensor& b) {
  if (a.is_same(b)) return true;
  // A lazily conjugated or negated tensor has other bits than its memory.
  const auto plain = [](const at::Tensor& t) { return t.detach().resolve_conj().resolve_neg().contiguous(); };
  const at::Tensor x = plain(a), y = plain(b);
  return x.nbytes() == 0 || std::memcmp(x.data_ptr(), y.data_ptr(), x.nbytes()) == 0;
}

std::string described(const at::Tensor& tensor) {
  return tensor.defined() ? fmt::format("{} of shape {}", c10::toString(tensor.scalar_type()), c10::str(tensor.sizes()))
                          : "an undefined tensor";
}

}  // namespace

at::Tensor join_leaf(const std::vector<at::Tensor>& values, std::optional<int> axis, const std::string& path) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!values[0].defined() || !values[i].defined() || values[i].sizes() != values[0].sizes() ||
        values[i].scalar_type() != values[0].scalar_type()) {
      throw ShapeError(
          fmt::format("position 0 holds {} and position {} holds {}: values that differ in shape or dtype cannot be "
                      "stacked; read them one by one with [i]",
                      described(values[0]), i, described(values[i])),
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

at::Tensor clone_leaf(const at::Tensor& tensor) {
  if (!tensor.defined()) throw TreeError("an undefined tensor cannot be replicated: give it a value first");
  return tensor.detach().clone();
}

void throw_donated(const std::string& donated_to) {
  throw InvalidArgument(fmt::format(
      "this value was given away: it was passed with std::move to {}, which may have reused its memory. Use that "
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
