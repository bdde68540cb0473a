// Participants that call different things: everyone throws, both sides are printed, nothing is written.
#include <atomic>

#include "comm/support.h"

namespace brigade::comm {
namespace mismatch_test {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::in_place;
using testing::outcomes;
using testing::piece;
using testing::text_of;

// Few elements travel as a payload, many directly.
class MismatchOf : public ::testing::TestWithParam<std::size_t> {
 protected:
  std::size_t count() const { return GetParam(); }

  // Rank 1 runs `odd`, the others `usual`. Returns what everyone threw, after checking that all did.
  template <class Usual, class Odd>
  std::vector<std::string> texts(Usual usual, Odd odd) {
    ThreadGroup group(3, {.spin = false, .name = "axis \"devices\""});
    const auto thrown = outcomes(group, [&](Group& member) { member.rank() == 1 ? odd(member) : usual(member); });
    std::vector<std::string> all;
    for (const auto& one : thrown) all.push_back(text_of<CollectiveMismatch>(one));
    for (std::size_t rank = 0; rank < all.size(); ++rank) {
      EXPECT_THAT(all[rank], AllOf(HasSubstr("axis \"devices\": "), HasSubstr(fmt::format("rank {} called ", rank)),
                                   HasSubstr("rank 1 called "), HasSubstr("mismatch_test.cpp:")));
    }
    return all;
  }

  template <class T>
  void all_reduce(Group& member, std::size_t elements, CallOptions options = {.tag = "psum"},
                  Reduction reduction = {}) {
    std::vector<T> in(elements, T(1));
    std::vector<T> out(elements, T(7));
    const Piece one = piece(in, out);
    try {
      member.all_reduce(reduction, {&one, 1}, options);
    } catch (const CollectiveMismatch&) {
      EXPECT_EQ(out, std::vector<T>(elements, T(7))) << "something was written";
      throw;
    }
  }
};
INSTANTIATE_TEST_SUITE_P(Elements, MismatchOf, ::testing::Values(4, 5000));

TEST_P(MismatchOf, Operations) {
  for (const std::string& text : texts([this](Group& member) { all_reduce<float>(member, count()); },
                                       [](Group& member) { member.barrier({.tag = "sync"}); })) {
    EXPECT_THAT(text, AllOf(HasSubstr("different operations"), HasSubstr("all_reduce \"psum\" (sum)"),
                            HasSubstr("barrier \"sync\"")));
  }
}

TEST_P(MismatchOf, OrderOfTwoOperations) {
  for (const std::string& text : texts(
           [this](Group& member) {
             all_reduce<float>(member, count(), {.tag = "loss"});
             all_reduce<float>(member, count(), {.tag = "gradient"});
           },
           [this](Group& member) {
             all_reduce<float>(member, count(), {.tag = "gradient"});
             all_reduce<float>(member, count(), {.tag = "loss"});
           })) {
    EXPECT_THAT(text, AllOf(HasSubstr("different tags"), HasSubstr("\"loss\""), HasSubstr("\"gradient\"")));
  }
}

TEST_P(MismatchOf, Dtypes) {
  // Equal bytes: only the dtype can tell them apart.
  for (const std::string& text : texts([this](Group& member) { all_reduce<float>(member, count()); },
                                       [this](Group& member) { all_reduce<std::int32_t>(member, count()); })) {
    EXPECT_THAT(text, AllOf(HasSubstr("dtype of piece 0"), HasSubstr(fmt::format("float32[{}]", count())),
                            HasSubstr(fmt::format("int32[{}]", count()))));
  }
}

TEST_P(MismatchOf, Counts) {
  for (const std::string& text : texts([this](Group& member) { all_reduce<float>(member, count()); },
                                       [this](Group& member) { all_reduce<float>(member, count() + 1); })) {
    EXPECT_THAT(text, AllOf(HasSubstr("size of piece 0"), HasSubstr(fmt::format("float32[{}]", count())),
                            HasSubstr(fmt::format("float32[{}]", count() + 1))));
  }
}

TEST_P(MismatchOf, ShapesOfEqualCounts) {
  const auto of_shape = [this](Group& member, std::vector<std::int64_t> shape) {
    std::vector<float> values(2 * count());
    Piece one = in_place(values);
    one.shape = shape;
    member.all_reduce({}, {&one, 1}, {});
  };
  const auto n = static_cast<std::int64_t>(count());
  for (const std::string& text : texts(
           [&](Group& member) {
             of_shape(member, {2, n});
           },
           [&](Group& member) {
             of_shape(member, {n, 2});
           })) {
    EXPECT_THAT(text, AllOf(HasSubstr("size of piece 0"), HasSubstr(fmt::format("float32[2, {}]", n)),
                            HasSubstr(fmt::format("float32[{}, 2]", n))));
  }
}

TEST_P(MismatchOf, DtypesOfWhatPiecesWereMadeOf) {
  const auto of_origin = [this](Group& member, std::string_view origin) {
    std::vector<float> values(count()), nothing;
    std::array<Piece, 2> pieces = {in_place(values), in_place(nothing)};
    pieces[1].origin = origin;
    try {
      member.all_reduce({}, pieces, {});
    } catch (const CollectiveMismatch& error) {
      EXPECT_EQ(error.piece(), 1);
      throw;
    }
  };
  for (const std::string& text : texts([&](Group& member) { of_origin(member, "float16"); },
                                       [&](Group& member) { of_origin(member, "bfloat16"); })) {
    EXPECT_THAT(text, AllOf(HasSubstr("dtype of piece 1"), HasSubstr("float32[0] from float16"),
                            HasSubstr("float32[0] from bfloat16")));
  }
}

TEST_P(MismatchOf, ReductionsAndDivisors) {
  for (const Reduction odd : {Reduction{.op = ReduceOp::kMax}, Reduction{.divisor = 3}}) {
    for (const std::string& text : texts([this](Group& member) { all_reduce<float>(member, count()); },
                                         [this, odd](Group& member) { all_reduce<float>(member, count(), {}, odd); })) {
      EXPECT_THAT(text, HasSubstr("(sum)"));
      EXPECT_THAT(text, HasSubstr(odd.op == ReduceOp::kMax ? "(max)" : "(sum / 3)"));
    }
  }
}

TEST_P(MismatchOf, Tags) {
  for (const std::string& text :
       texts([this](Group& member) { all_reduce<float>(member, count(), {.tag = "psum"}); },
             [this](Group& member) { all_reduce<float>(member, count(), {.tag = "pmean"}); })) {
    EXPECT_THAT(text, AllOf(HasSubstr("different tags"), HasSubstr("\"psum\""), HasSubstr("\"pmean\"")));
  }
}

TEST_P(MismatchOf, TagsThatDifferAfterWhatMessagesKeep) {
  const std::string beginning(100, 'a');
  for (const std::string& text :
       texts([&](Group& member) { all_reduce<float>(member, count(), {.tag = beginning + "b"}); },
             [&](Group& member) { all_reduce<float>(member, count(), {.tag = beginning + "c"}); })) {
    EXPECT_THAT(text, HasSubstr("tags that differ after their beginning"));
  }
}

TEST_P(MismatchOf, Roots) {
  const auto broadcast = [this](Group& member, int root) {
    std::vector<float> values(count());
    const Piece one = in_place(values);
    member.broadcast(root, {&one, 1}, {});
  };
  for (const std::string& text :
       texts([&](Group& member) { broadcast(member, 0); }, [&](Group& member) { broadcast(member, 2); })) {
    EXPECT_THAT(text,
                AllOf(HasSubstr("different roots"), HasSubstr("broadcast from 0"), HasSubstr("broadcast from 2")));
  }
}

TEST_P(MismatchOf, Pairs) {
  const auto permute = [this](Group& member, std::vector<RankPair> pairs) {
    std::vector<float> values(count());
    const Piece one = in_place(values);
    member.permute(pairs, {&one, 1}, {});
  };
  for (const std::string& text : texts(
           [&](Group& member) {
             permute(member, {{0, 1}, {1, 2}});
           },
           [&](Group& member) {
             permute(member, {{0, 1}, {2, 0}});
           })) {
    EXPECT_THAT(text,
                AllOf(HasSubstr("different pairs"), HasSubstr("[(0, 1), (1, 2)]"), HasSubstr("[(0, 1), (2, 0)]")));
  }
}

TEST_P(MismatchOf, NumbersOfPieces) {
  const auto gather = [this](Group& member, std::size_t pieces) {
    const std::vector<float> in(count());
    std::vector<float> out(3 * count());
    const std::vector<Piece> all(pieces, piece(in, out));
    member.all_gather(all, {});
  };
  for (const std::string& text :
       texts([&](Group& member) { gather(member, 2); }, [&](Group& member) { gather(member, 3); })) {
    EXPECT_THAT(text, HasSubstr("different numbers of pieces"));
  }
}

TEST_P(MismatchOf, OnlyInALaterPiece) {
  const auto gather = [this](Group& member, std::size_t second) {
    const std::vector<float> in(count());
    std::vector<float> out(3 * count());
    const std::vector<double> in2(second);
    std::vector<double> out2(3 * second);
    const Piece pieces[] = {piece(in, out), piece(in2, out2)};
    member.all_gather(pieces, {});
  };
  for (const std::string& text :
       texts([&](Group& member) { gather(member, 8); }, [&](Group& member) { gather(member, 9); })) {
    EXPECT_THAT(text, AllOf(HasSubstr("size of piece 1"), HasSubstr("float64[8]"), HasSubstr("float64[9]")));
  }
}

TEST(Mismatch, NamesTheOwnDeviceAndCall) {
  ThreadGroup group(2, {.spin = false});
  const auto site = std::source_location::current();
  const auto thrown =
      outcomes(group, [&](Group& member) { member.barrier({.tag = member.rank() == 0 ? "a" : "b", .site = site}); });
  for (int rank = 0; rank < 2; ++rank) {
    try {
      std::rethrow_exception(thrown[static_cast<std::size_t>(rank)]);
    } catch (const CollectiveMismatch& error) {
      EXPECT_EQ(error.context().device, rank);
      ASSERT_TRUE(error.context().site.has_value());
      EXPECT_EQ(error.context().site->line(), site.line());
      EXPECT_THAT(error.what(), HasSubstr(fmt::format("mismatch_test.cpp:{}", site.line())));
    }
  }
}

TEST(Mismatch, ALineOfDifferenceIsNotOne) {
  ThreadGroup group(2, {.spin = false});
  testing::on_every_rank(group, [](Group& member) {
    if (member.rank() == 0) {
      member.barrier({.tag = "same"});
    } else {
      member.barrier({.tag = "same"});
    }
  });
}

}  // namespace mismatch_test
}  // namespace brigade::comm
