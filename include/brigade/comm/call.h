// One call of a collective as a value: what a participant asks for, and what participants compare before a byte moves.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "brigade/comm/dtype.h"

namespace brigade::comm {

enum class Operation : std::uint8_t {
  kAllReduce,
  kReduce,
  kReduceScatter,
  kAllGather,
  kBroadcast,
  kAllToAll,
  kPermute,
  kBarrier,
};

inline constexpr std::size_t kOperationCount = 8;

std::string_view name_of(Operation operation) noexcept;

enum class ReduceOp : std::uint8_t { kSum, kMin, kMax };

std::string_view name_of(ReduceOp op) noexcept;

// How a reduction combines: the operator, then one division of the result, correctly rounded (a mean over N has divisor
// N). Integers take divisor 1 only. A NaN wins a min or max, as in JAX and torch.
struct Reduction {
  ReduceOp op = ReduceOp::kSum;
  double divisor = 1.0;
};

// One tensor of a collective: what this participant gives and where its result goes. Several travel in one meeting.
struct Piece {
  DType dtype = DType::kFloat32;
  std::span<const std::byte> in = {};
  std::span<std::byte> out = {};
  // Instead of `in`, where the call has leaves: one addend per entry there, each as long as `out`. The list lives as long as
  // the data.
  std::span<const std::span<const std::byte>> addends = {};
  // Sizes of the dimensions of what is given, compared among participants and shown in messages. No pointer: not
  // stated.
  std::span<const std::int64_t> shape = {};
  // What the elements were before they became `dtype`, such as "float16"; compared and shown. In static storage.
  std::string_view origin = {};
};

// Source and destination ranks of one transfer.
using RankPair = std::pair<int, int>;

// Fields that an operation does not take keep their defaults.
struct Call {
  Operation operation = Operation::kBarrier;
  Reduction reduction = {};
  int root = 0;
  std::span<const RankPair> pairs = {};
  std::span<const Piece> pieces = {};
  // For a sum (all_reduce, reduce) over leaves of which a participant has summed several itself: how many leaves each of its
  // addends holds. With all participants' addends in rank order, L leaves together, the result is T(0, L); each addend is a
  // whole subtree of that. A participant may have none. The list lives as long as the data.
  std::optional<std::span<const std::int32_t>> leaves = {};
};

// Whether the operation combines what participants give, element by element, to something as large.
inline bool is_reduction_of_whole(Operation operation) noexcept {
  return operation == Operation::kAllReduce || operation == Operation::kReduce;
}

// Bytes of a piece that every participant must have alike: of its `in`, but of `out` where not everybody gives one `in`.
inline std::size_t common_bytes(Operation operation, const Piece& piece) noexcept {
  return operation == Operation::kBroadcast || is_reduction_of_whole(operation) ? piece.out.size() : piece.in.size();
}

// A digest of everything that must be equal among participants. Calls that differ in one number always have different
// digests; others collide by chance, once in 2^64.
std::uint64_t fingerprint(const Call& call, std::string_view tag) noexcept;

// The rank that `pairs` sends to `destination`, or -1.
int source_of(std::span<const RankPair> pairs, int destination) noexcept;

}  // namespace brigade::comm
