#include "comm/checks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <functional>
#include <vector>

#include "comm/reduce_kernels.h"

namespace brigade::comm {
namespace {

bool overlap_in_part(std::span<const std::byte> in, std::span<const std::byte> out) {
  const std::less<const std::byte*> before;  // a total order, also among unrelated objects
  if (in.empty() || out.empty()) return false;
  if (in.data() == out.data() && in.size() == out.size()) return false;
  return before(in.data(), out.data() + out.size()) && before(out.data(), in.data() + in.size());
}

// What `in` and `out` of one piece must hold, as multiples of one block.
struct Blocks {
  std::size_t in = 1;
  std::size_t out = 1;
};

Blocks blocks_of(Operation operation, std::size_t size) {
  switch (operation) {
    case Operation::kReduceScatter:
      return {.in = size, .out = 1};
    case Operation::kAllGather:
      return {.in = 1, .out = size};
    case Operation::kAllToAll:
      return {.in = size, .out = size};
    default:
      return {};
  }
}

// Sizes of elements are powers of two, and most operations have one block: a division takes longer than the rest of a check.
bool is_whole(std::size_t bytes, DType dtype) noexcept { return (bytes & (size_of(dtype) - 1)) == 0; }
std::size_t block_of(std::size_t bytes, std::size_t count) noexcept { return count == 1 ? bytes : bytes / count; }

void check_leaves(const Call& call, int size, const Caller& caller) {
  if (!is_reduction_of_whole(call.operation) || call.reduction.op != ReduceOp::kSum) {
    throw InvalidArgument(fmt::format("{}: leaves are for sums by all_reduce and reduce only", name_of(call.operation)),
                          caller);
  }
  for (const std::int32_t count : *call.leaves) {
    if (count >= 1) continue;
    throw InvalidArgument(
        fmt::format("{}: an addend of {} leaves; it holds at least one", name_of(call.operation), count), caller);
  }
  const std::vector<std::span<const std::byte>> addends(call.leaves->size());
  if (size == 1 && !Addends(addends, *call.leaves).are_subtrees()) {
    throw InvalidArgument(fmt::format("{}: addends of [{}] leaves are not whole subtrees of their sum",
                                      name_of(call.operation), fmt::join(*call.leaves, ", ")),
                          caller);
  }
}

template <class Where>
void check_addends(const Call& call, const Piece& piece, Where where, const Caller& caller) {
  if (!piece.in.empty() || piece.addends.size() != call.leaves->size()) {
    throw ShapeError(
        fmt::format("{}: {} addends and {} bytes of in, where the call states the leaves of {} addends: give "
                    "as many, and no in",
                    where(), piece.addends.size(), piece.in.size(), call.leaves->size()),
        caller);
  }
  for (const std::span<const std::byte> addend : piece.addends) {
    if (addend.size() != piece.out.size()) {
      throw ShapeError(fmt::format("{}: an addend has {} bytes and out {}; they must have as many", where(),
                                   addend.size(), piece.out.size()),
                       caller);
    }
    if (overlap_in_part(addend, piece.out)) {
      throw InvalidArgument(where() + ": an addend and out overlap; they must be the same span or disjoint", caller);
    }
  }
}

void check_piece(const Call& call, std::size_t index, int rank, int size, const Caller& caller) {
  const Piece& piece = call.pieces[index];
  const auto where = [&] {
    return fmt::format("{}, piece {} ({})", name_of(call.operation), index, name_of(piece.dtype));
  };
  const Blocks blocks = blocks_of(call.operation, static_cast<std::size_t>(size));
  const bool no_input = call.operation == Operation::kBroadcast && rank != call.root && piece.in.empty();
  const std::size_t block = block_of(piece.out.size(), blocks.out);
  if (piece.out.size() != block * blocks.out || !is_whole(block, piece.dtype)) {
    throw ShapeError(fmt::format("{}: out has {} bytes, which is not {} block(s) of whole elements of {} bytes",
                                 where(), piece.out.size(), blocks.out, size_of(piece.dtype)),
                     caller);
  }
  if (call.leaves) {
    check_addends(call, piece, where, caller);
  } else if (!no_input && piece.in.size() != block * blocks.in) {
    throw ShapeError(fmt::format("{}: in has {} bytes and out {}; with {} participants in must have {}", where(),
                                 piece.in.size(), piece.out.size(), size, block * blocks.in),
                     caller);
  }
  if (overlap_in_part(piece.in, piece.out)) {
    throw InvalidArgument(where() + ": in and out overlap; they must be the same span or disjoint", caller);
  }
}

void check_pairs(std::span<const RankPair> pairs, int size, const Caller& caller) {
  std::vector<bool> is_source(static_cast<std::size_t>(size));
  std::vector<bool> is_destination(static_cast<std::size_t>(size));
  for (const auto& [source, destination] : pairs) {
    if (source < 0 || source >= size || destination < 0 || destination >= size) {
      throw InvalidArgument(
          fmt::format("permute: the pair ({}, {}) names a rank outside 0 to {}", source, destination, size - 1),
          caller);
    }
    if (is_source[static_cast<std::size_t>(source)] || is_destination[static_cast<std::size_t>(destination)]) {
      throw InvalidArgument(
          fmt::format("permute: the pair ({}, {}) repeats a {} that another pair has", source, destination,
                      is_source[static_cast<std::size_t>(source)] ? "source" : "destination"),
          caller);
    }
    is_source[static_cast<std::size_t>(source)] = true;
    is_destination[static_cast<std::size_t>(destination)] = true;
  }
}

}  // namespace

void check_reduction(Reduction reduction, DType dtype, const Caller& caller) {
  const Capabilities& capabilities = kernel_capabilities();
  if (capabilities.takes(reduction, dtype)) return;
  const Capabilities::Reductions& can = capabilities.of(dtype);
  const bool divides = reduction.divisor != 1.0;
  std::string_view advice;
  if (!can.sum && reduction.op == ReduceOp::kSum) advice = ": convert to an integer dtype first";
  if (!can.divisor && divides) advice = ": convert to a floating dtype first";
  throw InvalidArgument(
      fmt::format("{} of {}{} is not defined; {} takes {}, {}{}", name_of(reduction.op), name_of(dtype),
                  divides ? fmt::format(" with divisor {}", reduction.divisor) : "", name_of(dtype),
                  can.sum && can.order ? "sum, min and max" : (can.sum ? "sum" : "min and max"),
                  can.divisor ? "with any divisor" : "without a divisor", advice),
      caller);
}

void check_reduce_spans(DType dtype, std::span<const std::span<const std::byte>> inputs,
                        std::span<const std::byte> out) {
  if (inputs.empty()) throw InvalidArgument("a reduction needs at least one input");
  if (out.size() % size_of(dtype) != 0) {
    throw InvalidArgument(fmt::format("{} bytes are no whole number of {} elements", out.size(), name_of(dtype)));
  }
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].size() == out.size()) continue;
    throw InvalidArgument(
        fmt::format("input {} of a reduction has {} bytes and its result {}", i, inputs[i].size(), out.size()));
  }
}

void check_subgroup(std::span<const int> ranks, int rank, int size, const Caller& caller) {
  std::vector<bool> is_there(static_cast<std::size_t>(size));
  for (const int other : ranks) {
    if (other < 0 || other >= size) {
      throw InvalidArgument(
          fmt::format("a group among ranks [{}]: {} is outside 0 to {}", fmt::join(ranks, ", "), other, size - 1),
          caller);
    }
    if (is_there[static_cast<std::size_t>(other)]) {
      throw InvalidArgument(fmt::format("a group among ranks [{}]: {} stands twice", fmt::join(ranks, ", "), other),
                            caller);
    }
    is_there[static_cast<std::size_t>(other)] = true;
  }
  if (!is_there[static_cast<std::size_t>(rank)]) {
    throw InvalidArgument(fmt::format("a group among ranks [{}] was asked for by rank {}, which is not among them",
                                      fmt::join(ranks, ", "), rank),
                          caller);
  }
}

void check_call(const Call& call, int rank, int size, const Caller& caller) {
  if (call.leaves) check_leaves(call, size, caller);
  if (is_reduction_of_whole(call.operation) || call.operation == Operation::kReduceScatter) {
    for (const Piece& piece : call.pieces) check_reduction(call.reduction, piece.dtype, caller);
  }
  if (call.root < 0 || call.root >= size) {
    throw InvalidArgument(fmt::format("{}: root {} is outside 0 to {}", name_of(call.operation), call.root, size - 1),
                          caller);
  }
  if (!call.pairs.empty()) check_pairs(call.pairs, size, caller);
  for (std::size_t i = 0; i < call.pieces.size(); ++i) check_piece(call, i, rank, size, caller);
}

}  // namespace brigade::comm
