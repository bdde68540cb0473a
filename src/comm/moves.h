// How data gets from participants' inputs to outputs once they have agreed, free of any waiting.
#pragma once

#include <cstddef>
#include <span>

#include "brigade/comm/call.h"
#include "brigade/comm/group.h"

namespace brigade::comm {

using ConstBytes = std::span<const std::byte>;
using Bytes = std::span<std::byte>;

// Fills participant `rank`'s `piece.out` from everyone's `in` of that piece, and writes nothing else. `inputs` may be
// changed. Where an operation reads only some participants' inputs, the others' may be empty.
void pull(const Call& call, int rank, const Piece& piece, std::span<ConstBytes> inputs) noexcept;

// Share `rank` of an all-reduce that participants divide among them: reduces elements of `inputs` and writes them to
// every one of `outs`, block by block, so that an input may be its participant's output. The piece starts `start` bytes
// into the `total` bytes of all pieces together; the shares cut these evenly, at multiples of a cache line of each
// piece.
struct Share {
  int rank = 0;
  std::size_t start = 0;
  std::size_t total = 0;
};
void reduce_share(Reduction reduction, DType dtype, const Share& share, std::span<const ConstBytes> inputs,
                  std::span<const Bytes> outs, std::span<ConstBytes> scratch) noexcept;

}  // namespace brigade::comm
