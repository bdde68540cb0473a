#include "brigade/comm/call.h"

#include <array>
#include <bit>
#include <cstring>

namespace brigade::comm {
namespace {

constexpr std::array<std::string_view, 7> kOperationNames = {"all_reduce", "reduce_scatter", "all_gather", "broadcast",
                                                             "all_to_all", "permute",        "barrier"};
constexpr std::array<std::string_view, 3> kReduceOpNames = {"sum", "min", "max"};

// A multiplication by an odd number and the two rotations around it are bijections. The constant is 2^64 divided by the
// golden ratio.
std::uint64_t absorb(std::uint64_t digest, std::uint64_t word) noexcept {
  digest = (std::rotl(digest, 29) ^ word) * 0x9E3779B97F4A7C15;
  return digest ^ (digest >> 32);
}

std::uint64_t absorb(std::uint64_t digest, std::string_view text) noexcept {
  digest = absorb(digest, text.size());
  for (; !text.empty(); text.remove_prefix(std::min(text.size(), sizeof(std::uint64_t)))) {
    std::uint64_t word = 0;
    std::memcpy(&word, text.data(), std::min(text.size(), sizeof word));
    digest = absorb(digest, word);
  }
  return digest;
}

constexpr std::uint64_t packed(std::uint64_t high, std::uint64_t low) noexcept { return high << 32 | low; }

}  // namespace

std::string_view name_of(Operation operation) noexcept { return kOperationNames[static_cast<std::size_t>(operation)]; }

std::string_view name_of(ReduceOp op) noexcept { return kReduceOpNames[static_cast<std::size_t>(op)]; }

std::uint64_t fingerprint(const Call& call, std::string_view tag) noexcept {
  std::uint64_t digest =
      packed(static_cast<std::uint64_t>(call.operation) << 8 | static_cast<std::uint64_t>(call.reduction.op),
             static_cast<std::uint32_t>(call.root));
  digest = absorb(digest, std::bit_cast<std::uint64_t>(call.reduction.divisor));
  digest = absorb(digest, tag);
  digest = absorb(digest, packed(call.pieces.size(), call.pairs.size()));
  // No span has 2^56 bytes.
  for (const Piece& piece : call.pieces) {
    digest = absorb(digest, static_cast<std::uint64_t>(piece.dtype) << 56 | common_bytes(call.operation, piece));
    digest = absorb(digest, piece.origin);
    if (piece.shape.data() == nullptr) continue;
    digest = absorb(digest, piece.shape.size());
    for (const std::int64_t size : piece.shape) digest = absorb(digest, static_cast<std::uint64_t>(size));
  }
  for (const auto& [source, destination] : call.pairs) {
    digest = absorb(digest, packed(static_cast<std::uint32_t>(source), static_cast<std::uint32_t>(destination)));
  }
  return digest;
}

int source_of(std::span<const RankPair> pairs, int destination) noexcept {
  for (const RankPair& pair : pairs) {
    if (pair.second == destination) return pair.first;
  }
  return -1;
}

}  // namespace brigade::comm
