#include "random/fill.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <limits>

#include "brigade/base/error.h"

namespace brigade::random {

void check_shape(std::string_view function, at::IntArrayRef shape) {
  std::int64_t elements = 1;
  bool is_empty = false;
  bool overflows = false;
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    if (shape[axis] < 0) {
      throw ShapeError(
          fmt::format("random::{}: shape [{}] has the negative size {} on axis {}; give every size, as none is "
                      "inferred",
                      function, fmt::join(shape.vec(), ", "), shape[axis], axis));
    }
    is_empty = is_empty || shape[axis] == 0;
    overflows = overflows || __builtin_mul_overflow(elements, shape[axis], &elements);
  }
  // Each element takes up to 8 bytes, and the sum has to fit the address space.
  if (!is_empty && (overflows || elements > std::numeric_limits<std::int64_t>::max() / 8)) {
    throw ShapeError(fmt::format("random::{}: shape [{}] has more elements than memory can hold; draw in parts",
                                 function, fmt::join(shape.vec(), ", ")));
  }
}

void check_floating(std::string_view function, at::ScalarType dtype) {
  if (dtype == at::kFloat || dtype == at::kDouble) return;
  throw InvalidArgument(fmt::format("random::{}: draws Float or Double, not {}; draw Float and convert with .to(...)",
                                    function, c10::toString(dtype)));
}

}  // namespace brigade::random
