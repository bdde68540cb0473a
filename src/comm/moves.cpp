#include "comm/moves.h"

#include <algorithm>
#include <cstring>

#include "comm/reduce_kernels.h"

namespace brigade::comm {
namespace {

constexpr std::size_t kCacheLine = 64;

// A reduced block is written to other participants while it is in the first-level cache.
constexpr std::size_t kBlockBytes = std::size_t{8} * 1024;

// Large enough that claiming one costs nothing, small enough that nobody waits long for another's last one.
constexpr std::size_t kSliceBytes = std::size_t{128} * 1024;

void copy(ConstBytes from, Bytes to) noexcept {
  if (from.empty() || from.data() == to.data()) return;
  std::memcpy(to.data(), from.data(), from.size());
}

// a * b / c where a * b may overflow.
constexpr std::size_t scaled(std::size_t a, std::size_t b, std::size_t c) noexcept { return a / c * b + a % c * b / c; }

template <class Byte>
std::span<Byte> part(std::span<Byte> bytes, Range range) noexcept {
  return bytes.subspan(range.begin, range.end - range.begin);
}

// The reduction of everyone's bytes from `begin` on, which are already cut from the inputs.
void all_reduce(const Call& call, std::size_t owner, DType dtype, Range range, const Spans& spans) noexcept {
  const std::size_t participants = spans.inputs.size();
  for (Range block = range; block.begin < range.end; block.begin = block.end) {
    block.end = std::min(block.begin + kBlockBytes, range.end);
    for (std::size_t i = 0; i < participants; ++i) spans.scratch[i] = part(spans.inputs[i], block);
    const Bytes result = part(spans.outputs[owner], block);
    reduce_unchecked(call.reduction, dtype, spans.scratch, result);
    for (std::size_t i = 1; i < participants; ++i) {
      const Bytes output = spans.outputs[(owner + i) % participants];
      if (!output.empty()) copy(result, part(output, block));
    }
  }
}

void reduce_scatter(const Call& call, std::size_t owner, DType dtype, Range range, const Spans& spans) noexcept {
  const Bytes out = spans.outputs[owner];
  for (std::size_t i = 0; i < spans.inputs.size(); ++i) {
    spans.scratch[i] = part(spans.inputs[i].subspan(owner * out.size(), out.size()), range);
  }
  reduce_unchecked(call.reduction, dtype, spans.scratch, part(out, range));
}

// The output is one block of each participant's input, by rank; from `offset` in that input.
void gather_blocks(std::size_t offset, Bytes out, Range range, const Spans& spans) noexcept {
  const std::size_t block = out.size() / spans.inputs.size();
  while (!range.empty()) {
    const std::size_t source = range.begin / block;
    const std::size_t end = std::min(range.end, (source + 1) * block);
    const Range within = {range.begin - source * block, end - source * block};
    copy(part(spans.inputs[source].subspan(offset, block), within), part(out, {range.begin, end}));
    range.begin = end;
  }
}

}  // namespace

void move(const Call& call, int owner, DType dtype, Range range, const Spans& spans) noexcept {
  if (range.empty()) return;
  const auto rank = static_cast<std::size_t>(owner);
  const Bytes out = spans.outputs[rank];
  switch (call.operation) {
    case Operation::kAllReduce:
      return all_reduce(call, rank, dtype, range, spans);
    case Operation::kReduceScatter:
      return reduce_scatter(call, rank, dtype, range, spans);
    case Operation::kAllGather:
      return gather_blocks(0, out, range, spans);
    case Operation::kAllToAll:
      return gather_blocks(rank * (out.size() / spans.inputs.size()), out, range, spans);
    case Operation::kBroadcast: {
      const ConstBytes input = spans.inputs[static_cast<std::size_t>(call.root)];
      if (input.data() != out.data()) copy(part(input, range), part(out, range));
      return;
    }
    case Operation::kPermute: {
      const int source = source_of(call.pairs, owner);
      if (source >= 0) return copy(part(spans.inputs[static_cast<std::size_t>(source)], range), part(out, range));
      std::fill(out.begin() + static_cast<std::ptrdiff_t>(range.begin),
                out.begin() + static_cast<std::ptrdiff_t>(range.end), std::byte{0});
      return;
    }
    case Operation::kBarrier:
      return;
  }
}

Region::Region(Operation operation, int owner, int participants, std::size_t bytes) noexcept : end_(bytes) {
  if (operation == Operation::kAllReduce) {
    const auto rank = static_cast<std::size_t>(owner), count = static_cast<std::size_t>(participants);
    begin_ = scaled(bytes, rank, count);
    end_ = scaled(bytes, rank + 1, count);
  }
  slices_ = static_cast<std::uint32_t>((end_ - begin_ + kSliceBytes - 1) / kSliceBytes);
  first_ = static_cast<std::uint32_t>(static_cast<std::uint64_t>(slices_) * static_cast<std::uint64_t>(owner) /
                                      static_cast<std::uint64_t>(participants));
}

std::size_t Region::cut(std::uint32_t index) const noexcept {
  return begin_ + scaled(end_ - begin_, index, std::max(slices_, std::uint32_t{1}));
}

Range Region::in_piece(std::uint32_t index, std::size_t start, std::size_t end) const noexcept {
  // Where a cut through all pieces goes through this one.
  const auto at = [&](std::size_t cut) -> std::size_t {
    if (cut >= end) return end - start;
    return cut <= start ? 0 : (cut - start) / kCacheLine * kCacheLine;
  };
  return {at(cut(index)), at(cut(index + 1))};
}

}  // namespace brigade::comm
