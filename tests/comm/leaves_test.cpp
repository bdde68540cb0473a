// Sums to one participant, and sums over leaves of which participants have summed some themselves.
#include <numeric>
#include <random>

#include "comm/support.h"

namespace brigade::comm {
namespace leaves_test {

using ::testing::AllOf;
using testing::bits_of;
using ::testing::HasSubstr;
using testing::on_every_rank;
using testing::outcomes;
using testing::piece;
using testing::reduced;
using testing::text_of;
using testing::values_of;
using testing::values_of_all;

using Values = std::vector<float>;
using Count = std::int32_t;

// Few elements travel as a payload, more directly, many in several slices.
class Reduce : public ::testing::TestWithParam<std::size_t> {};
INSTANTIATE_TEST_SUITE_P(Elements, Reduce, ::testing::Values(3, 5000, 70'000));

TEST_P(Reduce, WritesTheRootsOutputOnly) {
  for (const int size : {1, 2, 3, 5}) {
    const auto inputs = values_of_all<float>(size, GetParam());
    const Reduction mean = {.divisor = 3};
    for (int root = 0; root < size; ++root) {
      ThreadGroup group(size, testing::patient());
      on_every_rank(group, [&](Group& member) {
        const Values& in = inputs[static_cast<std::size_t>(member.rank())];
        Values out(in.size(), -1.0F);
        const Piece one = piece(in, out);
        member.reduce(root, mean, {&one, 1}, {});
        EXPECT_EQ(bits_of(out), bits_of(member.rank() == root ? reduced(mean, inputs) : Values(in.size(), -1.0F)));
      });
    }
  }
}

TEST_P(Reduce, MayWriteOverTheRootsInput) {
  const auto inputs = values_of_all<float>(4, GetParam());
  ThreadGroup group(4, testing::patient());
  on_every_rank(group, [&](Group& member) {
    Values values = inputs[static_cast<std::size_t>(member.rank())];
    const Piece one = testing::in_place(values);
    member.reduce(2, {}, {&one, 1}, {});
    EXPECT_EQ(bits_of(values),
              bits_of(member.rank() == 2 ? reduced({}, inputs) : inputs[static_cast<std::size_t>(member.rank())]));
  });
}

TEST(Reduce, LetsAllNameOnePlaceForTheResult) {
  const auto inputs = values_of_all<float>(4, 100'000);
  Values result(inputs[0].size());
  ThreadGroup group(4, testing::patient());
  on_every_rank(group, [&](Group& member) {
    const Piece one = piece(inputs[static_cast<std::size_t>(member.rank())], result);
    member.reduce(1, {}, {&one, 1}, {});
  });
  EXPECT_EQ(bits_of(result), bits_of(reduced({}, inputs)));
}

// Leaf values and the sum T(begin, end) of some of them.
struct Leaves {
  std::vector<Values> values;

  Values sum(std::size_t begin, std::size_t end) const {
    if (end - begin == 1) return values[begin];
    std::size_t p = 1;
    while (2 * p < end - begin) p *= 2;
    Values left = sum(begin, begin + p);
    const Values right = sum(begin + p, end);
    for (std::size_t k = 0; k < left.size(); ++k) left[k] += right[k];
    return left;
  }
};

// What one participant brings: its addends and how many leaves each holds.
struct Share {
  std::vector<Count> counts;
  std::vector<Values> addends;

  std::vector<std::span<const std::byte>> spans() const {
    std::vector<std::span<const std::byte>> spans;
    for (const Values& addend : addends) spans.push_back(std::as_bytes(std::span(addend)));
    return spans;
  }
};

std::vector<Share> shares_of(const Leaves& leaves, const std::vector<std::vector<Count>>& counts) {
  std::vector<Share> shares;
  std::size_t at = 0;
  for (const std::vector<Count>& own : counts) {
    Share& share = shares.emplace_back(Share{.counts = own, .addends = {}});
    for (const Count count : own) {
      share.addends.push_back(leaves.sum(at, at + static_cast<std::size_t>(count)));
      at += static_cast<std::size_t>(count);
    }
  }
  return shares;
}

struct Case {
  std::int32_t leaves;
  std::vector<std::vector<Count>> counts;  // of each participant's addends
};

const std::vector<Case>& cases() {
  static const std::vector<Case> all = {
      {1, {{1}}},
      {2, {{1}, {1}}},
      {8, {{8}}},
      {8, {{4}, {4}}},
      {8, {{2}, {2}, {2}, {2}}},
      {8, {{2, 1}, {1, 2}, {2}}},  // 3, 3 and 2 leaves
      {6, {{2, 1}, {1, 2}}},       // 6 leaves on 2
      {6, {{2}, {2}, {2}}},        // on 3
      {5, {{1, 1}, {2}, {1}}},     // finer than it has to be
      {7, {{4}, {}, {2, 1}}},      // one has none
      {7, {{4, 2, 1}}},            // one has all
      {13, {{4}, {4}, {4, 1}}},
      {11, {{1, 1}, {1, 1}, {1, 1}, {1, 1}, {3}}},
  };
  return all;
}

TEST_P(Reduce, SumsLeavesInTheirTreeHoweverTheyAreDealtOut) {
  for (const Case& one : cases()) {
    Leaves leaves;
    for (int leaf = 0; leaf < one.leaves; ++leaf) leaves.values.push_back(values_of<float>(leaf, GetParam()));
    const auto shares = shares_of(leaves, one.counts);
    const Values expected = leaves.sum(0, leaves.values.size());
    ThreadGroup group(static_cast<int>(shares.size()), testing::patient());
    Values to_one(GetParam());
    on_every_rank(group, [&](Group& member) {
      const Share& share = shares[static_cast<std::size_t>(member.rank())];
      const auto addends = share.spans();
      const auto sum = [&](Operation operation, Values& out) {
        const Piece piece = {.out = std::as_writable_bytes(std::span(out)), .addends = addends};
        member.run({.operation = operation, .pieces = {&piece, 1}, .leaves = std::span(share.counts)}, {});
      };
      sum(Operation::kReduce, to_one);
      Values to_all(GetParam());
      sum(Operation::kAllReduce, to_all);
      EXPECT_EQ(bits_of(to_all), bits_of(expected)) << one.leaves << " leaves";
    });
    EXPECT_EQ(bits_of(to_one), bits_of(expected)) << one.leaves << " leaves";
  }
}

// Any contiguous share of the leaves falls into blocks that are aligned to their size.
std::vector<Count> aligned_blocks(Count begin, Count end) {
  std::vector<Count> counts;
  while (begin < end) {
    Count size = 1;
    while (begin % (2 * size) == 0 && begin + 2 * size <= end) size *= 2;
    counts.push_back(size);
    begin += size;
  }
  return counts;
}

TEST(Leaves, GiveTheSameBitsForAnyContiguousShares) {
  std::mt19937 engine(1);
  for (int round = 0; round < 200; ++round) {
    const auto count = std::uniform_int_distribution<Count>(1, 40)(engine);
    Leaves leaves;
    for (Count leaf = 0; leaf < count; ++leaf) leaves.values.push_back(values_of<float>(leaf, 40, 7));
    const int participants = std::uniform_int_distribution<int>(1, 5)(engine);
    std::vector<Count> cuts = {0, count};
    while (static_cast<int>(cuts.size()) <= participants)
      cuts.push_back(std::uniform_int_distribution<Count>(0, count)(engine));
    std::sort(cuts.begin(), cuts.end());
    std::vector<std::vector<Count>> counts;
    for (std::size_t i = 0; i + 1 < cuts.size(); ++i) counts.push_back(aligned_blocks(cuts[i], cuts[i + 1]));

    const auto shares = shares_of(leaves, counts);
    const Values expected = leaves.sum(0, leaves.values.size());
    ThreadGroup group(participants, testing::patient());
    on_every_rank(group, [&](Group& member) {
      const Share& share = shares[static_cast<std::size_t>(member.rank())];
      const auto addends = share.spans();
      Values out(expected.size());
      const Piece piece = {.out = std::as_writable_bytes(std::span(out)), .addends = addends};
      member.run({.operation = Operation::kAllReduce, .pieces = {&piece, 1}, .leaves = std::span(share.counts)}, {});
      EXPECT_EQ(bits_of(out), bits_of(expected)) << count << " leaves on " << participants;
    });
  }
}

TEST(Leaves, ThatAreNoSubtreesAreAMismatchOnEveryParticipant) {
  ThreadGroup group(2, testing::patient());
  const std::vector<std::vector<Count>> counts = {{3}, {3}};  // T(0, 6) divides after four
  const auto thrown = outcomes(group, [&](Group& member) {
    Values in(10), out(10, 5.0F);
    const std::span<const std::byte> addend = std::as_bytes(std::span(in));
    const Piece piece = {.out = std::as_writable_bytes(std::span(out)), .addends = {&addend, 1}};
    const auto& own = counts[static_cast<std::size_t>(member.rank())];
    try {
      member.run({.operation = Operation::kReduce, .pieces = {&piece, 1}, .leaves = std::span(own)},
                 {.tag = "gradients"});
    } catch (...) {
      EXPECT_EQ(out, Values(10, 5.0F));
      throw;
    }
  });
  for (const auto& one : thrown) {
    EXPECT_THAT(text_of<CollectiveMismatch>(one),
                AllOf(HasSubstr("not whole subtrees"),
                      HasSubstr("rank 0 called reduce \"gradients\" (sum) to 0 over [3] leaves"),
                      HasSubstr("rank 1 called"), HasSubstr("Nothing was moved")));
  }
}

TEST(Leaves, ThatOnlySomeStateAreAMismatch) {
  ThreadGroup group(2, testing::patient());
  const auto thrown = outcomes(group, [&](Group& member) {
    Values in(2000), out(2000);
    const std::vector<Count> own = {1};
    const std::span<const std::byte> addend = std::as_bytes(std::span(in));
    const std::span<std::byte> result = std::as_writable_bytes(std::span(out));
    if (member.rank() == 0) {
      const Piece piece = {.out = result, .addends = {&addend, 1}};
      member.run({.operation = Operation::kReduce, .pieces = {&piece, 1}, .leaves = std::span(own)}, {});
    } else {
      const Piece one = piece(in, out);
      member.run({.operation = Operation::kReduce, .pieces = {&one, 1}}, {});
    }
  });
  for (const auto& one : thrown) {
    EXPECT_THAT(text_of<CollectiveMismatch>(one), HasSubstr("one side states leaves, the other does not"));
  }
}

TEST(Leaves, AreRefusedWhereTheyMakeNoSense) {
  ThreadGroup group(1, testing::patient());
  Group& member = group.member(0);
  Values values(4), out(4);
  const auto run = [&](Operation operation, ReduceOp op, std::vector<Count> leaves, std::size_t addends,
                       std::size_t size) {
    const std::vector<std::span<const std::byte>> spans(addends, std::as_bytes(std::span(values)).first(size));
    const Piece piece = {.out = std::as_writable_bytes(std::span(out)), .addends = spans};
    member.run({.operation = operation, .reduction = {.op = op}, .pieces = {&piece, 1}, .leaves = std::span(leaves)},
               {});
  };
  const auto text = [&](auto... arguments) {
    group.reset();
    return text_of<Error>(outcomes(group, [&](Group&) { run(arguments...); }).front());
  };
  using Counts = std::vector<Count>;
  const auto sum = ReduceOp::kSum;
  EXPECT_THAT(text(Operation::kReduceScatter, sum, Counts{1}, 1U, 16U), HasSubstr("leaves are for sums by all_reduce"));
  EXPECT_THAT(text(Operation::kReduce, ReduceOp::kMax, Counts{1}, 1U, 16U), HasSubstr("leaves are for sums"));
  EXPECT_THAT(text(Operation::kReduce, sum, Counts{0}, 1U, 16U), HasSubstr("an addend of 0 leaves"));
  EXPECT_THAT(text(Operation::kReduce, sum, Counts{1, 2}, 2U, 16U), HasSubstr("[1, 2] leaves are not whole subtrees"));
  EXPECT_THAT(text(Operation::kReduce, sum, Counts{}, 0U, 16U), HasSubstr("not whole subtrees"));
  EXPECT_THAT(text(Operation::kReduce, sum, Counts{1}, 2U, 16U), HasSubstr("leaves of 1 addends"));
  EXPECT_THAT(text(Operation::kReduce, sum, Counts{1}, 1U, 12U), HasSubstr("an addend has 12 bytes and out 16"));
}

TEST(Leaves, TravelWhileOthersStillCompute) {
  const Leaves leaves = {.values = {values_of<float>(0, 5000), values_of<float>(1, 5000), values_of<float>(2, 5000)}};
  const auto shares = shares_of(leaves, {{2}, {1}});
  ThreadGroup group(2, testing::patient());
  std::vector<Values> results(20, Values(5000));
  on_every_rank(group, [&](Group& member) {
    const Share& share = shares[static_cast<std::size_t>(member.rank())];
    const auto addends = share.spans();
    std::vector<Pending> pending;
    for (Values& out : results) {
      const Piece piece = {.out = std::as_writable_bytes(std::span(out)), .addends = addends};
      pending.push_back(member.start(
          {.operation = Operation::kReduce, .pieces = {&piece, 1}, .leaves = std::span(share.counts)}, {}));
    }
    for (Pending& one : pending) one.wait();
  });
  for (const Values& result : results) EXPECT_EQ(bits_of(result), bits_of(leaves.sum(0, 3)));
}

}  // namespace leaves_test
}  // namespace brigade::comm
