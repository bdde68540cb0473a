// Where the elements of two tensors differ. Free of torch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "brigade/comm/dtype.h"

namespace brigade::guard {

struct ElementDifferences {
  std::uint64_t count = 0;     // of elements whose bits differ
  std::uint64_t first = 0;     // the index of the first of them, in the order of memory
  std::string values[2] = {};  // its values on both sides, with as many digits as tell them from any other
  // The largest distance of two values, counted in numbers of the dtype between them: of integers the difference, of floating
  // point numbers units in the last place, with -0 right below 0. None when a NaN differs from anything, or of bools.
  std::optional<std::uint64_t> largest_ulps = {};
};

// Nothing when all bits are the same. `one` and `other` have as many bytes as each other.
std::optional<ElementDifferences> differences(comm::DType dtype, std::span<const std::byte> one,
                                              std::span<const std::byte> other);

}  // namespace brigade::guard
