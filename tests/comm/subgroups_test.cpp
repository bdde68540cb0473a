// Groups among some of the participants: they meet apart, and fail together.
#include <atomic>

#include "comm/support.h"

namespace brigade::comm {
namespace subgroups_test {

using ::testing::AllOf;
using ::testing::AnyOf;
using testing::bits_of;
using ::testing::HasSubstr;
using testing::in_place;
using testing::on_every_rank;
using testing::outcomes;
using testing::piece;
using testing::reduced;
using testing::text_of;
using testing::values_of;

using Ranks = std::vector<int>;

// The one of `parts` that holds `rank`.
const Ranks& part_of(const std::vector<Ranks>& parts, int rank) {
  return *std::find_if(parts.begin(), parts.end(),
                       [&](const Ranks& part) { return std::find(part.begin(), part.end(), rank) != part.end(); });
}

// Few elements travel as a payload, many directly.
class SubgroupsOf : public ::testing::TestWithParam<std::size_t> {
 protected:
  std::size_t count() const { return GetParam(); }
};
INSTANTIATE_TEST_SUITE_P(Elements, SubgroupsOf, ::testing::Values(4, 5000));

TEST_P(SubgroupsOf, ReduceAmongTheirOwnInTheOrderGiven) {
  const std::vector<std::vector<Ranks>> partitions = {
      {{0, 1}, {2, 3}, {4, 5}}, {{0, 2, 4}, {1, 3, 5}}, {{5, 0, 3}, {1}, {4, 2}}, {{5, 4, 3, 2, 1, 0}}};
  ThreadGroup group(6, testing::patient());
  on_every_rank(group, [&](Group& member) {
    for (int round = 0; round < 20; ++round) {
      const auto& parts = partitions[static_cast<std::size_t>(round) % partitions.size()];
      const Ranks& part = part_of(parts, member.rank());
      Group& own = member.among(part);
      EXPECT_EQ(own.size(), static_cast<int>(part.size()));
      EXPECT_EQ(part[static_cast<std::size_t>(own.rank())], member.rank());

      std::vector<std::vector<float>> inputs;
      for (const int rank : part) inputs.push_back(values_of<float>(rank, count(), static_cast<unsigned>(round)));
      std::vector<float> values = inputs[static_cast<std::size_t>(own.rank())];
      const Piece one = in_place(values);
      own.all_reduce({}, {&one, 1}, {});
      EXPECT_EQ(bits_of(values), bits_of(reduced<float>({}, inputs)));
    }
  });
}

TEST_P(SubgroupsOf, GatherInTheOrderGiven) {
  ThreadGroup group(4, testing::patient());
  on_every_rank(group, [&](Group& member) {
    const Ranks ranks = {3, 0, 2, 1};
    const std::vector<std::int32_t> in(count(), member.rank());
    std::vector<std::int32_t> out(4 * count());
    const Piece one = piece(in, out);
    member.among(ranks).all_gather({&one, 1}, {});
    for (std::size_t i = 0; i < out.size(); ++i) ASSERT_EQ(out[i], ranks[i / count()]);
  });
}

TEST_P(SubgroupsOf, DoNotWaitForOneAnother) {
  ThreadGroup group(4, testing::patient());
  std::atomic<int> first_done{0};
  on_every_rank(group, [&](Group& member) {
    std::vector<float> values(count(), 1.0F);
    const Piece one = in_place(values);
    const bool is_first = member.rank() < 2;
    Group& own = member.among(is_first ? Ranks{0, 1} : Ranks{2, 3});
    if (!is_first) {
      while (first_done.load() < 2) std::this_thread::yield();
    }
    for (int i = 0; i < (is_first ? 20 : 3); ++i) own.all_reduce({.divisor = 2}, {&one, 1}, {});
    first_done.fetch_add(1);
    EXPECT_EQ(values, std::vector<float>(count(), 1.0F));
  });
}

TEST_P(SubgroupsOf, AskedForTwiceAreTheSame) {
  ThreadGroup group(3, testing::patient());
  on_every_rank(group, [&](Group& member) {
    const Ranks pair = member.rank() == 2 ? Ranks{2} : Ranks{0, 1};
    EXPECT_EQ(&member.among(pair), &member.among(pair));
    EXPECT_EQ(&member.among(Ranks{0, 1, 2}), &member);
    EXPECT_NE(&member.among(Ranks{2, 1, 0}), &member);
  });
}

TEST_P(SubgroupsOf, OfSubgroupsCountTheirRanks) {
  ThreadGroup group(4, testing::patient());
  on_every_rank(group, [&](Group& member) {
    if (member.rank() == 1) return;
    Group& three = member.among(Ranks{3, 2, 0});
    if (three.rank() == 1) return;
    Group& two = three.among(Ranks{2, 0});  // 0 and 3 of the whole
    std::vector<std::int32_t> values(count(), member.rank());
    const Piece one = in_place(values);
    two.broadcast(0, {&one, 1}, {});
    EXPECT_EQ(values[0], 0);
    EXPECT_EQ(two.rank(), member.rank() == 0 ? 0 : 1);
  });
}

TEST_P(SubgroupsOf, FailWithTheWhole) {
  ThreadGroup group(4, {.spin = false, .name = "axis \"a\""});
  const auto thrown = outcomes(group, [&](Group& member) {
    std::vector<float> values(count());
    const Piece one = in_place(values);
    if (member.rank() == 3) return group.abort(3, "out of memory");
    member.among(member.rank() == 2 ? Ranks{2, 3} : Ranks{0, 1, 3}).all_reduce({}, {&one, 1}, {.tag = "psum"});
  });
  EXPECT_EQ(thrown[3], nullptr);
  EXPECT_THAT(text_of<Aborted>(thrown[0]), HasSubstr("axis \"a\": rank 3 failed: out of memory"));
  EXPECT_THAT(text_of<Aborted>(thrown[2]), HasSubstr("axis \"a\": rank 3 failed: out of memory"));
}

TEST_P(SubgroupsOf, NameTheirRanksWhenOneHasLeft) {
  ThreadGroup group(4, {.spin = false});
  const auto thrown = outcomes(group, [&](Group& member) {
    std::vector<float> values(count());
    const Piece one = in_place(values);
    if (member.rank() == 3) return group.leave(3);
    if (member.rank() == 1) member.among(Ranks{3, 1}).all_reduce({}, {&one, 1}, {.tag = "psum"});
  });
  EXPECT_THAT(text_of<CollectiveMismatch>(thrown[1]),
              AllOf(HasSubstr("operation 1 among ranks [3, 1] can never complete"), HasSubstr("rank 3 has left")));
}

TEST_P(SubgroupsOf, DifferentCallsAmongThemAreAMismatch) {
  ThreadGroup group(4, {.spin = false});
  const auto thrown = outcomes(group, [&](Group& member) {
    if (member.rank() < 2) return;
    std::vector<float> values(count() + static_cast<std::size_t>(member.rank()));
    const Piece one = in_place(values);
    member.among(Ranks{3, 2}).all_reduce({}, {&one, 1}, {.tag = "psum"});
  });
  for (const std::size_t rank : {2u, 3u}) {
    EXPECT_THAT(text_of<CollectiveMismatch>(thrown[rank]),
                AllOf(HasSubstr("rank 2 called all_reduce"), HasSubstr("rank 3 called all_reduce"),
                      HasSubstr("among ranks [3, 2]"), HasSubstr(fmt::format("float32[{}]", count() + 2)),
                      HasSubstr(fmt::format("float32[{}]", count() + 3))));
  }
}

// Nobody would ever move, and nobody has failed or left.
TEST_P(SubgroupsOf, ACircleOfWaitsIsAMismatchAtOnce) {
  for (int round = 0; round < 20; ++round) {
    ThreadGroup group(3, {.spin = round % 2 == 0, .name = "axis \"a\""});
    const auto thrown = outcomes(group, [&](Group& member) {
      std::vector<float> values(count());
      const Piece one = in_place(values);
      const std::vector<Ranks> pairs = {{0, 1}, {1, 2}, {2, 0}};
      member.among(pairs[static_cast<std::size_t>(member.rank())]).all_reduce({}, {&one, 1}, {.tag = "psum"});
    });
    for (const auto& one : thrown) {
      EXPECT_THAT(text_of<CollectiveMismatch>(one),
                  AllOf(HasSubstr("wait for one another in different groups"), HasSubstr("rank 0 waits for rank 1"),
                        HasSubstr("rank 1 waits for rank 2"), HasSubstr("rank 2 waits for rank 0"),
                        HasSubstr("among ranks [1, 2]"), HasSubstr("all_reduce \"psum\"")));
    }
  }
}

TEST_P(SubgroupsOf, AWholeAndAPartInDifferentOrderAreAMismatch) {
  ThreadGroup group(4, {.spin = false});
  const auto thrown = outcomes(group, [&](Group& member) {
    std::vector<float> values(count());
    const Piece one = in_place(values);
    Group& part = member.among(member.rank() < 2 ? Ranks{0, 1} : Ranks{2, 3});
    if (member.rank() != 0) part.all_reduce({}, {&one, 1}, {});
    member.all_reduce({}, {&one, 1}, {});
    if (member.rank() == 0) part.all_reduce({}, {&one, 1}, {});
  });
  for (const auto& one : thrown) {
    EXPECT_THAT(text_of<CollectiveMismatch>(one),
                AllOf(HasSubstr("rank 0 waits for rank 1 in all_reduce"), HasSubstr("rank 1 waits for rank 0")));
  }
}

TEST_P(SubgroupsOf, AreUsableAfterAReset) {
  ThreadGroup group(3, testing::patient());
  for (int round = 0; round < 30; ++round) {
    outcomes(group, [&](Group& member) {
      std::vector<float> values(count(), 1.0F);
      const Piece one = in_place(values);
      if (member.rank() == round % 3) return group.abort(member.rank(), "round over");
      member.among(Ranks{2, 0, 1}).all_reduce({}, {&one, 1}, {});
    });
    group.reset();
    on_every_rank(group, [&](Group& member) {
      std::vector<float> values(count(), 1.0F);
      const Piece one = in_place(values);
      member.among(Ranks{2, 0, 1}).all_reduce({}, {&one, 1}, {});
      EXPECT_EQ(values, std::vector<float>(count(), 3.0F));
    });
    group.reset();
  }
}

TEST(Subgroups, WrongRanksAreRefused) {
  ThreadGroup group(3, {});
  Group& member = group.member(1);
  const auto text = [&](const Ranks& ranks) -> std::string {
    try {
      member.among(ranks);
    } catch (const InvalidArgument& error) {
      return error.what();
    }
    return "nothing was thrown";
  };
  EXPECT_THAT(text({1, 3}), HasSubstr("ranks [1, 3]: 3 is outside 0 to 2"));
  EXPECT_THAT(text({-1, 1}), HasSubstr("-1 is outside 0 to 2"));
  EXPECT_THAT(text({1, 0, 1}), HasSubstr("1 stands twice"));
  EXPECT_THAT(text({0, 2}), HasSubstr("asked for by rank 1, which is not among them"));
  EXPECT_THAT(text({}), HasSubstr("rank 1, which is not among them"));
}

}  // namespace subgroups_test
}  // namespace brigade::comm
