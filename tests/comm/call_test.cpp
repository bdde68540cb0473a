#include "brigade/comm/call.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "comm/support.h"

namespace brigade::comm {
namespace call_test {

std::vector<Piece> pieces_of(std::vector<std::byte>& memory, const std::vector<std::uint8_t>& sizes) {
  std::vector<Piece> pieces;
  for (const std::uint8_t size : sizes)
    pieces.push_back({.in = std::span(memory).first(size), .out = std::span(memory).first(size)});
  return pieces;
}

RC_GTEST_PROP(Fingerprint, DiffersWhenOneFieldDoes, ()) {
  std::vector<std::byte> memory(256);
  auto sizes = *rc::gen::nonEmpty<std::vector<std::uint8_t>>();
  const auto pieces = pieces_of(memory, sizes);
  const auto tag = *rc::gen::arbitrary<std::string>();
  const Call call = {.operation = Operation::kAllReduce, .pieces = pieces};
  const std::uint64_t digest = fingerprint(call, tag);
  RC_ASSERT(fingerprint(call, tag) == digest);

  const auto at = *rc::gen::inRange<std::size_t>(0, sizes.size());
  auto others = pieces;
  others[at].dtype = DType::kInt32;
  RC_ASSERT(fingerprint({.operation = Operation::kAllReduce, .pieces = others}, tag) != digest);
  sizes[at] = static_cast<std::uint8_t>(sizes[at] + *rc::gen::inRange(1, 256));
  others = pieces_of(memory, sizes);
  RC_ASSERT(fingerprint({.operation = Operation::kAllReduce, .pieces = others}, tag) != digest);

  RC_ASSERT(fingerprint({.operation = Operation::kAllGather, .pieces = pieces}, tag) != digest);
  RC_ASSERT(fingerprint({.operation = Operation::kAllReduce, .reduction = {.divisor = 2}, .pieces = pieces}, tag) !=
            digest);
  RC_ASSERT(fingerprint({.operation = Operation::kAllReduce, .root = 1, .pieces = pieces}, tag) != digest);
  const std::vector<std::int32_t> leaves = {1};
  RC_ASSERT(fingerprint({.operation = Operation::kAllReduce, .pieces = pieces, .leaves = std::span(leaves)}, tag) !=
            digest);
  RC_ASSERT(fingerprint(call, tag + 'x') != digest);
}

TEST(Fingerprint, SeesTheOrderOfPairsAndPieces) {
  const std::vector<RankPair> forth = {{0, 1}, {1, 2}};
  const std::vector<RankPair> back = {{1, 2}, {0, 1}};
  EXPECT_NE(fingerprint({.operation = Operation::kPermute, .pairs = forth}, ""),
            fingerprint({.operation = Operation::kPermute, .pairs = back}, ""));
  std::vector<std::byte> memory(8);
  const auto ascending = pieces_of(memory, {4, 8});
  const auto descending = pieces_of(memory, {8, 4});
  EXPECT_NE(fingerprint({.operation = Operation::kAllGather, .pieces = ascending}, ""),
            fingerprint({.operation = Operation::kAllGather, .pieces = descending}, ""));
}

}  // namespace call_test
}  // namespace brigade::comm
