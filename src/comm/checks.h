// What one participant can know to be wrong with its own call, before it meets the others.
#pragma once

#include <cstddef>
#include <optional>
#include <source_location>
#include <span>

#include "brigade/base/error.h"
#include "brigade/comm/call.h"
#include "brigade/comm/group.h"

namespace brigade::comm {

// Who made a call, and where. An error context takes longer to make than most checks, so it is made of this when one fails.
struct Caller {
  std::optional<int> seat = {};
  std::optional<std::source_location> site = {};

  operator ErrorContext() const { return {.device = seat, .site = site}; }  // NOLINT(google-explicit-constructor)
};

// Throws InvalidArgument, with what the dtype does take, when kernel_capabilities() does not take the reduction.
void check_reduction(Reduction reduction, DType dtype, const Caller& caller = {});

// Throws InvalidArgument unless all spans have one size, in whole elements, and there is at least one input.
void check_reduce_spans(DType dtype, std::span<const std::span<const std::byte>> inputs,
                        std::span<const std::byte> out);

// Throws ShapeError when sizes of a piece do not fit the operation for `rank` in a group of `size`, and InvalidArgument when a
// dtype, divisor, root or pair is none that the operation takes or spans overlap in part.
void check_call(const Call& call, int rank, int size, const Caller& caller);

// Throws InvalidArgument unless `ranks` are of a group of `size`, each once, `rank` among them.
void check_subgroup(std::span<const int> ranks, int rank, int size, const Caller& caller);

}  // namespace brigade::comm
