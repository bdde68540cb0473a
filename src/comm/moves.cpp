#include "comm/moves.h"

#include <algorithm>
#include <cstring>

#include "comm/post.h"
#include "comm/reduce_kernels.h"

namespace brigade::comm {
namespace {

// A reduced block is written to other participants while it is in the first-level cache.
constexpr std::size_t kBlockBytes = std::size_t{8} * 1024;

void copy(ConstBytes from, Bytes to) noexcept {
  if (from.empty() || from.data() == to.data()) return;
  std::memcpy(to.data(), from.data(), from.size());
}

// Where share `index` of `count` begins in a piece. Every participant computes the same cuts.
std::size_t cut(const Share& share, std::size_t index, std::size_t count, std::size_t piece_bytes) noexcept {
  if (index == count) return piece_bytes;
  // In two parts, as total * index may overflow.
  const std::size_t at = share.total / count * index + share.total % count * index / count;
  if (at <= share.start) return 0;
  return std::min(at - share.start, piece_bytes) / kCacheLine * kCacheLine;
}

}  // namespace

void pull(const Call& call, int rank, const Piece& piece, std::span<ConstBytes> inputs) noexcept {
  const auto own = static_cast<std::size_t>(rank);
  const std::size_t participants = inputs.size();
  switch (call.operation) {
    case Operation::kAllReduce:
      return reduce_unchecked(call.reduction, piece.dtype, inputs, piece.out);

    case Operation::kReduceScatter: {
      const std::size_t block = piece.out.size();
      for (ConstBytes& input : inputs) input = input.subspan(own * block, block);
      return reduce_unchecked(call.reduction, piece.dtype, inputs, piece.out);
    }

    // Each participant begins with its own block, so that they do not all read from one at a time.
    case Operation::kAllGather:
    case Operation::kAllToAll: {
      const std::size_t block = piece.out.size() / participants;
      for (std::size_t i = 0; i < participants; ++i) {
        const std::size_t source = (own + i) % participants;
        const std::size_t offset = call.operation == Operation::kAllGather ? 0 : own * block;
        copy(inputs[source].subspan(offset, block), piece.out.subspan(source * block, block));
      }
      return;
    }

    case Operation::kBroadcast:
      return copy(inputs[static_cast<std::size_t>(call.root)], piece.out);

    case Operation::kPermute: {
      const int source = source_of(call.pairs, rank);
      if (source >= 0) return copy(inputs[static_cast<std::size_t>(source)], piece.out);
      std::fill(piece.out.begin(), piece.out.end(), std::byte{0});
      return;
    }

    case Operation::kBarrier:
      return;
  }
}

void reduce_share(Reduction reduction, DType dtype, const Share& share, std::span<const ConstBytes> inputs,
                  std::span<const Bytes> outs, std::span<ConstBytes> scratch) noexcept {
  const auto own = static_cast<std::size_t>(share.rank);
  const std::size_t participants = inputs.size();
  const std::size_t end = cut(share, own + 1, participants, outs[own].size());
  for (std::size_t at = cut(share, own, participants, outs[own].size()); at < end; at += kBlockBytes) {
    const std::size_t bytes = std::min(kBlockBytes, end - at);
    for (std::size_t i = 0; i < participants; ++i) scratch[i] = inputs[i].subspan(at, bytes);
    const Bytes result = outs[own].subspan(at, bytes);
    reduce_unchecked(reduction, dtype, scratch, result);
    for (std::size_t i = 1; i < participants; ++i) copy(result, outs[(own + i) % participants].subspan(at, bytes));
  }
}

}  // namespace brigade::comm
