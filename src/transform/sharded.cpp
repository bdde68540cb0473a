#include "brigade/transform/sharded.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <cstring>

namespace brigade::detail {
namespace {

// Dense memory that holds what `tensor` means: a lazily conjugated or negated one has other bits.
at::Tensor resolved(const at::Tensor& tensor) { return tensor.detach().resolve_conj().resolve_neg().contiguous(); }

// The number of the first element of which x and y, both contiguous, have other bits; -1 when there is none.
std::int64_t first_difference(const at::Tensor& x, const at::Tensor& y) {
  const auto* a = static_cast<const char*>(x.data_ptr());
  const auto* b = static_cast<const char*>(y.data_ptr());
  if (x.nbytes() == 0 || std::memcmp(a, b, x.nbytes()) == 0) return -1;
  const std::size_t size = x.element_size();
  std::size_t at = 0;
  while (std::memcmp(a + at, b + at, size) == 0) at += size;
  return static_cast<std::int64_t>(at / size);
}

std::string described(const at::Tensor& tensor) {
  return tensor.defined() ? fmt::format("{} of shape {}", c10::toString(tensor.scalar_type()), c10::str(tensor.sizes()))
                          : "an undefined tensor";
}

std::string element_text(const at::Tensor& contiguous, std::int64_t number) {
  const at::Scalar value = contiguous.view(-1)[number].item();
  if (value.isComplex()) {
    const auto z = value.toComplexDouble();
    return fmt::format("{:.17g}{:+.17g}i", z.real(), z.imag());
  }
  return value.isFloatingPoint() ? number_text(value.toDouble()) : number_text(value.toLong());
}

void require_same_form(const at::Tensor& first, const at::Tensor& other, std::size_t position, const char* use,
                       const tree::Path& path, std::source_location site) {
  if (first.defined() && other.defined() ? first.sizes() == other.sizes() && first.scalar_type() == other.scalar_type()
                                         : first.defined() == other.defined())
    return;
  throw ShapeError(fmt::format("position 0 holds {} and position {} holds {}: values that differ in shape or dtype {}; "
                               "read them one by one with [i]",
                               described(first), position, described(other), use),
                   {.argument = path.text(), .site = site});
}

}  // namespace

std::string number_text(long double number, int digits) { return fmt::format("{:.{}g}", number, digits); }

void throw_replicas_differ(const std::string& first, const std::string& other, int position, const tree::Path& path,
                           std::source_location site) {
  throw InvalidArgument(
      fmt::format("replicas that should be equal are not: position 0 holds {} and position {} holds {}. Reduce the "
                  "value over the axis first, stack it along an axis, or say Agreement::kAssumed to take position 0's",
                  first, position, other),
      {.argument = path.text(), .site = site});
}

void require_same(const at::Tensor& first, const at::Tensor& other, int position, const tree::Path& path,
                  std::source_location site) {
  require_same_form(first, other, static_cast<std::size_t>(position), "are no replicas", path, site);
  if (first.is_same(other)) return;
  const at::Tensor x = resolved(first), y = resolved(other);
  const std::int64_t number = first_difference(x, y);
  if (number < 0) return;
  throw_replicas_differ(
      fmt::format("{} at element {} of shape {}", element_text(x, number), number, c10::str(x.sizes())),
      element_text(y, number), position, path, site);
}

at::Tensor stack_leaf(const std::vector<at::Tensor>& values, int axis, const tree::Path& path,
                      std::source_location site) {
  for (std::size_t i = 0; i < values.size(); ++i)
    require_same_form(values[0], values[i], i, "cannot be stacked", path, site);
  if (!values[0].defined()) return {};
  const std::int64_t rank = values[0].dim() + 1;
  if (axis < -rank || axis >= rank) {
    throw ShapeError(fmt::format("out_axes {} for a result of shape {}: the axis is from {} to {}", axis,
                                 c10::str(values[0].sizes()), -rank, rank - 1),
                     {.argument = path.text(), .site = site});
  }
  return at::stack(values, axis);
}

at::Tensor clone_leaf(const at::Tensor& tensor) {
  if (!tensor.defined()) throw TreeError("an undefined tensor cannot be replicated: give it a value first");
  return tensor.detach().clone();
}

void throw_taken(const Taken& taken) {
  const std::string where = fmt::format("argument {} of the pmap at {}", taken.argument, to_string(taken.pmap));
  if (taken.failed) {
    throw InvalidArgument(fmt::format(
        "this value is lost: it was passed with std::move as {}, whose body had written into it when the call failed. "
        "Start again from a copy made before, or pass it without std::move",
        where));
  }
  throw InvalidArgument(
      fmt::format("this value was given away: it was passed with std::move as {}, which may have reused its memory. "
                  "Use that call's "
                  "result, or pass it without std::move",
                  where));
}

void throw_position_out_of_range(std::int64_t position, std::size_t size) {
  throw InvalidArgument(
      size == 0
          ? fmt::format("position {} of a Sharded that holds nothing: it was never given a value, or moved from",
                        position)
          : fmt::format("position {} of a Sharded over {} devices: positions are 0 to {}", position, size, size - 1));
}

}  // namespace brigade::detail
