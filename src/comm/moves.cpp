#include "comm/moves.h"

#include <algorithm>

#include "comm/reduce_kernels.h"

namespace brigade::comm {
namespace {

// Large enough that claiming one costs nothing, small enough that nobody waits long for another's last one.
constexpr std::size_t kSliceBytes = std::size_t{256} * 1024;

// Written to those of the outputs that are somebody's concern.
void reduce_whole(const Call& call, DType dtype, Range range, const Spans& spans, std::span<Bytes> outputs,
                  Stores stores) noexcept {
  const auto end = std::remove_if(outputs.begin(), outputs.end(), [](Bytes out) { return out.empty(); });
  const auto wanted = std::span<const Bytes>(outputs.begin(), end);
  if (!wanted.empty()) reduce_range(call.reduction, dtype, {spans.inputs, spans.leaves}, wanted, range, stores);
}

void reduce_scatter(const Call& call, std::size_t owner, DType dtype, Range range, Spans spans,
                    Stores stores) noexcept {
  const Bytes out = spans.outputs[owner];
  for (ConstBytes& input : spans.inputs) input = input.subspan(owner * out.size(), out.size());
  reduce_range(call.reduction, dtype, {spans.inputs}, {&out, 1}, range, stores);
}

// The output is one block of each participant's input, by rank; from `offset` in that input.
void gather_blocks(std::size_t offset, Bytes out, Range range, const Spans& spans, Stores stores) noexcept {
  const std::size_t block = out.size() / spans.inputs.size();
  while (!range.empty()) {
    const std::size_t source = range.begin / block;
    const std::size_t end = std::min(range.end, (source + 1) * block);
    const Range within = {range.begin - source * block, end - source * block};
    copy_bytes(part(spans.inputs[source].subspan(offset, block), within), part(out, {range.begin, end}), stores);
    range.begin = end;
  }
}

}  // namespace

void move(const Call& call, int owner, DType dtype, Range range, Spans spans, Stores stores) noexcept {
  if (range.empty()) return;
  const auto rank = static_cast<std::size_t>(owner);
  const Bytes out = spans.outputs[rank];
  switch (call.operation) {
    case Operation::kAllReduce:
      return reduce_whole(call, dtype, range, spans, spans.outputs, stores);
    case Operation::kReduce:
      return reduce_whole(call, dtype, range, spans, spans.outputs.subspan(static_cast<std::size_t>(call.root), 1),
                          stores);
    case Operation::kReduceScatter:
      return reduce_scatter(call, rank, dtype, range, spans, stores);
    case Operation::kAllGather:
      return gather_blocks(0, out, range, spans, stores);
    case Operation::kAllToAll:
      return gather_blocks(rank * (out.size() / spans.inputs.size()), out, range, spans, stores);
    case Operation::kBroadcast:
      return copy_bytes(part(spans.inputs[static_cast<std::size_t>(call.root)], range), part(out, range), stores);
    case Operation::kPermute: {
      const int source = source_of(call.pairs, owner);
      if (source >= 0) {
        return copy_bytes(part(spans.inputs[static_cast<std::size_t>(source)], range), part(out, range), stores);
      }
      const Bytes zeros = part(out, range);
      return std::fill(zeros.begin(), zeros.end(), std::byte{0});
    }
    case Operation::kBarrier:
      return;
  }
}

bool is_in_place(const Call& call, int owner, const Spans& spans) noexcept {
  const auto lies_in_input = [&](const Bytes& out) {
    return std::any_of(spans.inputs.begin(), spans.inputs.end(),
                       [&](const ConstBytes& in) { return in.data() == out.data(); });
  };
  if (call.operation == Operation::kAllReduce) {
    return std::any_of(spans.outputs.begin(), spans.outputs.end(), lies_in_input);
  }
  return lies_in_input(
      spans.outputs[static_cast<std::size_t>(call.operation == Operation::kReduce ? call.root : owner)]);
}

Region::Region(Operation operation, int owner, int participants, std::size_t bytes) noexcept : end_(bytes) {
  const auto rank = static_cast<std::size_t>(owner), count = static_cast<std::size_t>(participants);
  if (is_reduction_of_whole(operation)) {
    const std::size_t share = bytes / count, left = bytes % count;
    begin_ = rank * share + std::min(rank, left);
    end_ = begin_ + share + (rank < left ? 1 : 0);
  }
  slices_ = static_cast<std::uint32_t>((end_ - begin_ + kSliceBytes - 1) / kSliceBytes);
  if (slices_ > 1) first_ = static_cast<std::uint32_t>(slices_ * rank / count);
}

std::size_t Region::cut(std::uint32_t index) const noexcept { return std::min(begin_ + index * kSliceBytes, end_); }

Range Region::in_piece(std::uint32_t index, std::size_t start, std::size_t end) const noexcept {
  // Where a cut through all pieces goes through this one.
  const auto at = [&](std::size_t cut) -> std::size_t {
    if (cut >= end) return end - start;
    return cut <= start ? 0 : (cut - start) / kCacheLine * kCacheLine;
  };
  return {at(cut(index)), at(cut(index + 1))};
}

}  // namespace brigade::comm
