// How data gets from participants' inputs to outputs once they have agreed, free of any waiting.
//
// What an operation writes is divided into one region per participant: in an all-reduce an equal share of the elements, to
// be written to everyone's outputs, or in a reduce to the root's; in the others a participant's own outputs. Pieces follow one another in a region,
// which is divided into slices that anyone may carry out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "brigade/comm/call.h"
#include "comm/copy.h"

namespace brigade::comm {

using ConstBytes = std::span<const std::byte>;
using Bytes = std::span<std::byte>;

// What all participants gave for one piece: [rank]. Outputs that are nobody's concern may be empty, and so may inputs that
// the operation does not read. Both may be changed. In a call with leaves, inputs are the addends of all, in rank order.
struct Spans {
  std::span<ConstBytes> inputs;
  std::span<Bytes> outputs;
  std::span<const std::int32_t> leaves = {};  // of each input; empty: one
};

// Writes `range` of one piece of the region of `owner`; nothing else.
void move(const Call& call, int owner, DType dtype, Range range, Spans spans, Stores stores) noexcept;

// Whether the region of `owner`, or part of it, lies where inputs lie.
bool is_in_place(const Call& call, int owner, const Spans& spans) noexcept;

// The region of one participant and how it is cut. All participants that posted the same call cut it alike.
class Region {
 public:
  // `bytes` are those of one participant's outputs, all pieces together.
  Region(Operation operation, int owner, int participants, std::size_t bytes) noexcept;

  std::uint32_t slices() const noexcept { return slices_; }

  // The slice that a region's n-th claim gets: regions begin at different ones, so that not everyone reads from the same
  // participant at one time.
  std::uint32_t in_turn(std::uint32_t claim) const noexcept {
    const std::uint32_t slice = claim + first_;
    return slice < slices_ ? slice : slice - slices_;
  }

  // What slice `index` has of the piece whose output lies from `start` to `end` in the bytes of all together. Where slices
  // meet inside a piece, they do so at a multiple of a cache line from its beginning.
  Range in_piece(std::uint32_t index, std::size_t start, std::size_t end) const noexcept;

  // Where slice `index` begins in the bytes of all pieces together; that of slices() is the end.
  std::size_t cut(std::uint32_t index) const noexcept;

 private:
  std::size_t begin_ = 0;
  std::size_t end_;
  std::uint32_t slices_;
  std::uint32_t first_ = 0;
};

}  // namespace brigade::comm
