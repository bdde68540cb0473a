// Every operation but all_reduce against a plain loop, by payload (few bytes) and directly (many).
#include <array>
#include <atomic>

#include "comm/support.h"

namespace brigade::comm {
namespace collectives_test {

using testing::bits_of;
using testing::in_place;
using testing::on_every_rank;
using testing::patient;
using testing::piece;
using testing::reduced;
using testing::values_of;
using testing::values_of_all;

// Ranks and elements per block.
class CollectiveOf : public ::testing::TestWithParam<std::tuple<int, std::size_t>> {
 protected:
  int ranks() const { return std::get<0>(GetParam()); }
  std::size_t block() const { return std::get<1>(GetParam()); }
  std::size_t blocks() const { return static_cast<std::size_t>(ranks()) * block(); }
};
INSTANTIATE_TEST_SUITE_P(RanksAndBlocks, CollectiveOf,
                         ::testing::Combine(::testing::Values(1, 2, 3, 4, 7), ::testing::Values(0, 1, 3, 33, 4001)));

template <class T>
std::vector<T> block_of(const std::vector<T>& values, std::size_t index, std::size_t length) {
  const auto begin = values.begin() + static_cast<std::ptrdiff_t>(index * length);
  return {begin, begin + static_cast<std::ptrdiff_t>(length)};
}

TEST_P(CollectiveOf, ReduceScatterGivesEachRankItsBlockOfTheReduction) {
  const Reduction mean = {.divisor = static_cast<double>(ranks())};
  const auto expected = reduced(mean, values_of_all<float>(ranks(), blocks()));
  ThreadGroup group(ranks(), patient());
  on_every_rank(group, [&](Group& member) {
    const auto in = values_of<float>(member.rank(), blocks());
    std::vector<float> out(block());
    const Piece one = piece(in, out);
    member.reduce_scatter(mean, {&one, 1}, {});
    EXPECT_EQ(bits_of(out), bits_of(block_of(expected, static_cast<std::size_t>(member.rank()), block())));
  });
}

TEST_P(CollectiveOf, AllGatherConcatenatesInRankOrder) {
  std::vector<std::uint8_t> expected;
  for (const auto& values : values_of_all<std::uint8_t>(ranks(), block())) {
    expected.insert(expected.end(), values.begin(), values.end());
  }
  ThreadGroup group(ranks(), patient());
  on_every_rank(group, [&](Group& member) {
    const auto in = values_of<std::uint8_t>(member.rank(), block());
    std::vector<std::uint8_t> out(blocks());
    const Piece one = piece(in, out);
    member.all_gather({&one, 1}, {});
    EXPECT_EQ(out, expected);
  });
}

TEST_P(CollectiveOf, BroadcastCopiesTheRootFromAnyRank) {
  ThreadGroup group(ranks(), patient());
  on_every_rank(group, [&](Group& member) {
    for (int root = 0; root < ranks(); ++root) {
      const auto expected = values_of<double>(root, block());
      const auto in = values_of<double>(member.rank(), block());
      std::vector<double> out(block());
      const Piece full = piece(in, out);
      member.broadcast(root, {&full, 1}, {});
      EXPECT_EQ(out, expected);

      // Others may give nothing, and the root may be its own output.
      std::vector<double> values = member.rank() == root ? in : std::vector<double>(block());
      Piece sparse = in_place(values);
      if (member.rank() != root) sparse.in = {};
      member.broadcast(root, {&sparse, 1}, {});
      EXPECT_EQ(values, expected);
    }
  });
}

TEST_P(CollectiveOf, AllToAllTransposesBlocks) {
  const auto inputs = values_of_all<std::int64_t>(ranks(), blocks());
  ThreadGroup group(ranks(), patient());
  on_every_rank(group, [&](Group& member) {
    const auto own = static_cast<std::size_t>(member.rank());
    std::vector<std::int64_t> expected;
    for (const auto& input : inputs) {
      const auto part = block_of(input, own, block());
      expected.insert(expected.end(), part.begin(), part.end());
    }
    std::vector<std::int64_t> out(blocks());
    const Piece apart = piece(inputs[own], out);
    member.all_to_all({&apart, 1}, {});
    EXPECT_EQ(out, expected);

    // Some in place, others not.
    std::vector<std::int64_t> values = inputs[own];
    std::vector<std::int64_t> other(blocks());
    const Piece mixed = own % 2 == 0 ? in_place(values) : piece(values, other);
    member.all_to_all({&mixed, 1}, {});
    EXPECT_EQ(own % 2 == 0 ? values : other, expected);
  });
}

TEST_P(CollectiveOf, PermuteFollowsPairsAndGivesZerosWithoutASource) {
  std::vector<RankPair> ring;
  std::vector<RankPair> path;
  for (int rank = 0; rank < ranks(); ++rank) ring.emplace_back(rank, (rank + 1) % ranks());
  for (int rank = 0; rank + 1 < ranks(); ++rank) path.emplace_back(rank, rank + 1);
  ThreadGroup group(ranks(), patient());
  on_every_rank(group, [&](Group& member) {
    const int before = (member.rank() + ranks() - 1) % ranks();
    const auto in = values_of<float>(member.rank(), block());
    std::vector<float> out(block(), 1.0F);
    const Piece apart = piece(in, out);
    member.permute(ring, {&apart, 1}, {});
    EXPECT_EQ(out, values_of<float>(before, block()));

    std::vector<float> values = in;
    const Piece same = in_place(values);
    member.permute(ring, {&same, 1}, {});
    EXPECT_EQ(values, values_of<float>(before, block()));

    member.permute(path, {&apart, 1}, {});
    EXPECT_EQ(out, member.rank() == 0 ? std::vector<float>(block()) : values_of<float>(before, block()));

    member.permute({}, {&apart, 1}, {});
    EXPECT_EQ(out, std::vector<float>(block()));
  });
}

TEST_P(CollectiveOf, SeveralPiecesOfSeveralTypesTravelInOneCall) {
  ThreadGroup group(ranks(), patient());
  on_every_rank(group, [&](Group& member) {
    const auto bytes = values_of<std::uint8_t>(member.rank(), block() + 1);
    const auto doubles = values_of<double>(member.rank(), block());
    std::vector<std::uint8_t> bytes_out(bytes.size() * static_cast<std::size_t>(ranks()));
    std::vector<double> doubles_out(blocks());
    const Piece pieces[] = {piece(bytes, bytes_out), piece(doubles, doubles_out)};
    member.all_gather(pieces, {});
    for (int rank = 0; rank < ranks(); ++rank) {
      const auto index = static_cast<std::size_t>(rank);
      EXPECT_EQ(block_of(bytes_out, index, bytes.size()), values_of<std::uint8_t>(rank, bytes.size()));
      EXPECT_EQ(block_of(doubles_out, index, block()), values_of<double>(rank, block()));
    }
  });
}

TEST(Barrier, NobodyPassesBeforeEveryoneHasArrived) {
  constexpr int kRanks = 5;
  constexpr int kRounds = 500;
  std::atomic<int> arrivals{0};
  ThreadGroup group(kRanks, patient());
  on_every_rank(group, [&](Group& member) {
    for (int round = 1; round <= kRounds; ++round) {
      arrivals.fetch_add(1);
      member.barrier({});
      EXPECT_GE(arrivals.load(), round * kRanks);
    }
  });
}

TEST(ThreadGroup, RefusesSizesAndRanksThatDoNotExist) {
  EXPECT_THROW(ThreadGroup(0, {}), InvalidArgument);
  ThreadGroup group(2, {});
  EXPECT_THROW(group.member(2), InvalidArgument);
  EXPECT_THROW(group.member(-1), InvalidArgument);
  EXPECT_EQ(group.size(), 2);
  EXPECT_EQ(group.member(1).rank(), 1);
  EXPECT_EQ(group.member(1).size(), 2);
}

TEST(ThreadGroup, CountsWhatAParticipantGave) {
  ThreadGroup group(2, patient());
  on_every_rank(group, [](Group& member) {
    std::vector<float> values(100'000);
    const Piece one = in_place(values);
    for (int i = 0; i < 3; ++i) member.all_reduce({}, {&one, 1}, {});
    member.barrier({});
    const Statistics statistics = member.statistics();
    EXPECT_EQ(statistics.calls, 4);
    EXPECT_EQ(statistics.bytes, 3 * 400'000);
    EXPECT_GT(statistics.moving.count(), 0);
    member.reset_statistics();
    EXPECT_EQ(member.statistics().calls, 0);
  });
}

// Short and long operations by turns, spinning and not: payloads and posts are used again and again.
TEST(ThreadGroup, ServesAHundredThousandOperations) {
  for (const bool spin : {false, true}) {
    ThreadGroup group(2, {.time_without_progress = std::chrono::seconds(200), .spin = spin});
    on_every_rank(group, [](Group& member) {
      std::vector<std::int64_t> one(1);
      std::vector<std::int64_t> many(400);
      for (std::int64_t i = 0; i < 50'000; ++i) {
        one[0] = i + member.rank();
        const Piece pieces[] = {in_place(one)};
        member.all_reduce({}, pieces, {});
        ASSERT_EQ(one[0], 2 * i + 1);
        if (i % 16 != 0) continue;
        std::fill(many.begin(), many.end(), i);
        const Piece large[] = {in_place(many)};
        member.all_reduce({}, large, {});
        ASSERT_EQ(many[399], 2 * i);
      }
    });
  }
}

// Several pieces of odd sizes in several slices, whose ends fall inside pieces.
TEST(ThreadGroup, CarriesPiecesThatAreCutIntoSlices) {
  constexpr std::array<std::size_t, 4> kCounts = {350'003, 1, 120'001, 77'777};
  for (const int ranks : {2, 3}) {
    std::vector<std::vector<std::uint32_t>> expected;
    for (unsigned i = 0; i < kCounts.size(); ++i) {
      std::vector<std::vector<float>> inputs;
      for (int rank = 0; rank < ranks; ++rank) inputs.push_back(values_of<float>(rank, kCounts[i], i));
      expected.push_back(bits_of(reduced({.divisor = 3}, inputs)));
    }
    ThreadGroup group(ranks, patient());
    on_every_rank(group, [&](Group& member) {
      for (const bool is_in_place : {false, true}) {
        std::vector<std::vector<float>> in, out;
        std::vector<Piece> pieces;
        for (unsigned i = 0; i < kCounts.size(); ++i) {
          in.push_back(values_of<float>(member.rank(), kCounts[i], i));
          out.emplace_back(kCounts[i]);
        }
        for (unsigned i = 0; i < kCounts.size(); ++i) {
          pieces.push_back(is_in_place ? in_place(in[i]) : piece(in[i], out[i]));
        }
        member.all_reduce({.divisor = 3}, pieces, {});
        for (unsigned i = 0; i < kCounts.size(); ++i) EXPECT_EQ(bits_of(is_in_place ? in[i] : out[i]), expected[i]);
      }
    });
  }
}

// Results so large that they are stored past the caches.
TEST(ThreadGroup, CarriesWhatNoCacheHolds) {
  constexpr int kRanks = 2;
  constexpr std::size_t kBlock = (std::size_t{9} << 20) / sizeof(std::int32_t) + 3;  // as one output
  const auto value = [](int rank, std::size_t i) { return static_cast<std::int32_t>(i * 2654435761U) + rank; };
  const auto filled = [&](int rank, std::size_t count) {
    std::vector<std::int32_t> values(count);
    for (std::size_t i = 0; i < count; ++i) values[i] = value(rank, i);
    return values;
  };
  ThreadGroup group(kRanks, patient());
  on_every_rank(group, [&](Group& member) {
    const auto own = static_cast<std::size_t>(member.rank());
    const auto one = filled(member.rank(), kBlock), two = filled(member.rank(), kRanks * kBlock);
    std::vector<std::int32_t> small(kBlock), large(kRanks * kBlock);
    const auto differing = [](const std::vector<std::int32_t>& values, auto expected) {
      std::size_t count = 0;
      for (std::size_t i = 0; i < values.size(); ++i) count += values[i] != expected(i) ? 1 : 0;
      return count;
    };
    const auto sum = [&](std::size_t i) {
      return static_cast<std::int32_t>(static_cast<std::uint32_t>(value(0, i)) +
                                       static_cast<std::uint32_t>(value(1, i)));
    };
    const Piece reduced_piece = piece(one, small), scattered = piece(two, small), gathered = piece(one, large),
                exchanged = piece(two, large);
    member.all_reduce({}, {&reduced_piece, 1}, {});
    EXPECT_EQ(differing(small, sum), 0U);
    member.reduce_scatter({}, {&scattered, 1}, {});
    EXPECT_EQ(differing(small, [&](std::size_t i) { return sum(own * kBlock + i); }), 0U);
    member.all_gather({&gathered, 1}, {});
    EXPECT_EQ(differing(large, [&](std::size_t i) { return value(static_cast<int>(i / kBlock), i % kBlock); }), 0U);
    member.all_to_all({&exchanged, 1}, {});
    EXPECT_EQ(
        differing(large, [&](std::size_t i) { return value(static_cast<int>(i / kBlock), own * kBlock + i % kBlock); }),
        0U);
    member.broadcast(1, {&reduced_piece, 1}, {});
    EXPECT_EQ(differing(small, [&](std::size_t i) { return value(1, i); }), 0U);
  });
}

TEST(ThreadGroup, CarriesThirtyTwoParticipantsOnAnyMachine) {
  constexpr int kRanks = 32;
  const auto expected = bits_of(reduced({.divisor = kRanks}, values_of_all<float>(kRanks, 9001)));
  ThreadGroup group(kRanks, patient());
  on_every_rank(group, [&](Group& member) {
    for (int round = 0; round < 20; ++round) {
      auto values = values_of<float>(member.rank(), 9001);
      const Piece one = in_place(values);
      member.all_reduce({.divisor = kRanks}, {&one, 1}, {});
      ASSERT_EQ(bits_of(values), expected);
      std::vector<std::int32_t> ones(1, 1);
      const Piece few = in_place(ones);
      member.all_reduce({}, {&few, 1}, {});
      ASSERT_EQ(ones[0], kRanks);
    }
  });
}

}  // namespace collectives_test
}  // namespace brigade::comm
