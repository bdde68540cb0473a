// One call of a collective as a value: what participants compare, and what their messages print.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "brigade/comm/group.h"

namespace brigade::comm {

enum class Operation : std::uint8_t {
  kAllReduce,
  kReduceScatter,
  kAllGather,
  kBroadcast,
  kAllToAll,
  kPermute,
  kBarrier,
};

std::string_view name_of(Operation operation) noexcept;

// Fields that an operation does not take keep their defaults.
struct Call {
  Operation operation = Operation::kBarrier;
  Reduction reduction = {};
  int root = 0;
  std::span<const RankPair> pairs = {};
  std::span<const Piece> pieces = {};
};

// Bytes of a piece that every participant must have alike: of its `in`, but of `out` where only the root's `in` counts.
inline std::size_t common_bytes(Operation operation, const Piece& piece) noexcept {
  return operation == Operation::kBroadcast ? piece.out.size() : piece.in.size();
}

// A digest of everything that must be equal among participants. Every step of it is a bijection of the digest so far
// and of the field, so calls that differ in one field always have different digests; others collide once in 2^64.
std::uint64_t fingerprint(const Call& call, std::string_view tag) noexcept;

// The rank that `pairs` sends to `destination`, or -1.
int source_of(std::span<const RankPair> pairs, int destination) noexcept;

}  // namespace brigade::comm
