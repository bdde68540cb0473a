#include "comm/support.h"

namespace brigade::comm {
namespace all_reduce_test {

using testing::bits_of;
using testing::in_place;
using testing::on_every_rank;
using testing::patient;
using testing::piece;
using testing::reduced;
using testing::values_of;
using testing::values_of_all;

constexpr ReduceOp kOps[] = {ReduceOp::kSum, ReduceOp::kMin, ReduceOp::kMax};

std::vector<std::size_t> lengths() {
  std::vector<std::size_t> all;
  for (std::size_t length = 0; length <= 300; ++length) all.push_back(length);
  for (const std::size_t length : {511u, 1025u, 4099u, 30'011u}) all.push_back(length);
  return all;
}

// Every participant reduces all lengths, from spans that start `rank` + length bytes off alignment.
template <class T>
void expect_the_tree_at_any_length(int ranks, ReduceOp op) {
  const Reduction reduction = {.op = op, .divisor = std::is_floating_point_v<T> ? ranks : 1.0};
  const auto inputs = values_of_all<T>(ranks, lengths().back());
  const auto expected = bits_of(reduced(reduction, inputs));
  ThreadGroup group(ranks, patient());
  on_every_rank(group, [&](Group& member) {
    const std::vector<T>& values = inputs[static_cast<std::size_t>(member.rank())];
    std::vector<std::byte> in(lengths().back() * sizeof(T) + 64);
    std::vector<std::byte> out(in.size());
    std::vector<T> result;
    for (const std::size_t length : lengths()) {
      const std::size_t shift = (static_cast<std::size_t>(member.rank()) + length) % 7;
      const std::size_t bytes = length * sizeof(T);
      if (bytes > 0) std::memcpy(in.data() + shift, values.data(), bytes);
      const Piece one = {.dtype = testing::dtype_of<T>(),
                         .in = std::span(in).subspan(shift, bytes),
                         .out = std::span(out).subspan(shift + 1, bytes)};
      member.all_reduce(reduction, {&one, 1}, {});
      result.resize(length);
      if (bytes > 0) std::memcpy(result.data(), one.out.data(), bytes);
      const auto bits = bits_of(result);
      ASSERT_TRUE(std::equal(bits.begin(), bits.end(), expected.begin())) << "length " << length;
    }
  });
}

class AllReduceOf : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Participants, AllReduceOf, ::testing::Range(1, 10));

TEST_P(AllReduceOf, Float32IsTheTreeAtAnyLength) {
  for (const ReduceOp op : kOps) expect_the_tree_at_any_length<float>(GetParam(), op);
}
TEST_P(AllReduceOf, Float64IsTheTreeAtAnyLength) {
  for (const ReduceOp op : kOps) expect_the_tree_at_any_length<double>(GetParam(), op);
}
TEST_P(AllReduceOf, Int32IsTheTreeAtAnyLength) {
  for (const ReduceOp op : kOps) expect_the_tree_at_any_length<std::int32_t>(GetParam(), op);
}
TEST_P(AllReduceOf, Int64IsTheTreeAtAnyLength) {
  for (const ReduceOp op : kOps) expect_the_tree_at_any_length<std::int64_t>(GetParam(), op);
}

TEST_P(AllReduceOf, MayReplaceItsInput) {
  for (const std::size_t length : {1u, 100u, 1000u, 50'001u}) {
    const auto expected = bits_of(reduced({}, values_of_all<float>(GetParam(), length)));
    ThreadGroup group(GetParam(), patient());
    on_every_rank(group, [&](Group& member) {
      auto values = values_of<float>(member.rank(), length);
      const Piece one = in_place(values);
      member.all_reduce({}, {&one, 1}, {});
      EXPECT_EQ(bits_of(values), expected);
    });
  }
}

// Small and large together, of several types, with empty ones between.
TEST_P(AllReduceOf, SeveralPiecesTravelTogether) {
  for (const std::size_t scale : {1u, 1000u}) {
    const auto floats = bits_of(reduced({}, values_of_all<float>(GetParam(), 7 * scale, 1)));
    const auto doubles = bits_of(reduced({}, values_of_all<double>(GetParam(), 3 * scale, 2)));
    const auto integers = reduced({}, values_of_all<std::int32_t>(GetParam(), 5 * scale, 3));
    ThreadGroup group(GetParam(), patient());
    on_every_rank(group, [&](Group& member) {
      auto a = values_of<float>(member.rank(), 7 * scale, 1);
      const auto b_in = values_of<double>(member.rank(), 3 * scale, 2);
      std::vector<double> b(b_in.size());
      std::vector<float> empty;
      auto c = values_of<std::int32_t>(member.rank(), 5 * scale, 3);
      const Piece pieces[] = {in_place(a), piece(b_in, b), in_place(empty), in_place(c)};
      member.all_reduce({}, pieces, {});
      EXPECT_EQ(bits_of(a), floats);
      EXPECT_EQ(bits_of(b), doubles);
      EXPECT_EQ(c, integers);
    });
  }
}

// 500 pieces of a few bytes each, as the leaves of a tree are, together too large for one payload.
TEST(AllReduce, ManySmallPieces) {
  constexpr std::size_t kPieces = 500;
  ThreadGroup group(3, patient());
  on_every_rank(group, [&](Group& member) {
    std::vector<std::vector<float>> leaves;
    std::vector<Piece> pieces;
    for (std::size_t i = 0; i < kPieces; ++i)
      leaves.push_back(values_of<float>(member.rank(), i % 7, static_cast<std::uint32_t>(i)));
    for (auto& leaf : leaves) pieces.push_back(in_place(leaf));
    member.all_reduce({}, pieces, {});
    for (std::size_t i = 0; i < kPieces; ++i) {
      const auto inputs = values_of_all<float>(3, i % 7, static_cast<std::uint32_t>(i));
      ASSERT_EQ(bits_of(leaves[i]), bits_of(reduced({}, inputs))) << i;
    }
  });
}

TEST(AllReduce, InputsThatAreNotOutputsStayAsTheyWere) {
  ThreadGroup group(2, patient());
  on_every_rank(group, [](Group& member) {
    const auto original = values_of<float>(member.rank(), 4000);
    const auto in = original;
    std::vector<float> out(in.size());
    const Piece one = piece(in, out);
    member.all_reduce({}, {&one, 1}, {});
    EXPECT_EQ(in, original);
  });
}

}  // namespace all_reduce_test
}  // namespace brigade::comm
