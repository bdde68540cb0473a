// Participants that fail, leave or never come: the others are released and told who and where.
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <ctime>
#include <memory>

#include "comm/support.h"

namespace brigade::comm {
namespace failure_test {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::in_place;
using ::testing::Not;
using testing::on_every_rank;
using testing::outcomes;
using testing::piece;
using testing::text_of;

void all_reduce(Group& member, std::size_t count, CallOptions options = {}) {
  std::vector<float> values(count, 1.0F);
  const Piece one = in_place(values);
  member.all_reduce({}, {&one, 1}, options);
  EXPECT_EQ(values, std::vector<float>(count, static_cast<float>(member.size())));
}

// Few elements travel as a payload, many directly; waiters spin or sleep.
class FailureOf : public ::testing::TestWithParam<std::tuple<std::size_t, bool>> {
 protected:
  std::size_t count() const { return std::get<0>(GetParam()); }
  ThreadGroup::Options options() const {
    return {.time_without_progress = testing::kNoLimit, .spin = std::get<1>(GetParam()), .name = "group g"};
  }
};
INSTANTIATE_TEST_SUITE_P(ElementsAndSpin, FailureOf, ::testing::Combine(::testing::Values(4, 5000), ::testing::Bool()));

TEST_P(FailureOf, AbortReleasesThoseWhoWait) {
  ThreadGroup group(3, options());
  const auto thrown = outcomes(group, [&](Group& member) {
    all_reduce(member, count());
    if (member.rank() == 2) return group.abort(2, "out of memory");
    all_reduce(member, count(), {.tag = "psum"});
  });
  EXPECT_EQ(thrown[2], nullptr);
  for (const int rank : {0, 1}) {
    const std::string text = text_of<Aborted>(thrown[static_cast<std::size_t>(rank)]);
    EXPECT_THAT(text, AllOf(HasSubstr("group g: rank 2 failed: out of memory"),
                            HasSubstr(fmt::format("device {}", rank)), HasSubstr("failure_test.cpp:")));
  }
}

TEST_P(FailureOf, AbortReachesThoseWhoComeLater) {
  ThreadGroup group(2, options());
  group.abort(1, "first");
  group.abort(0, "second");
  const auto thrown = outcomes(group, [&](Group& member) { all_reduce(member, count(), {.tag = "psum"}); });
  for (const auto& one : thrown) {
    EXPECT_THAT(text_of<Aborted>(one),
                AllOf(HasSubstr("rank 1 failed: first"), HasSubstr("psum"), Not(HasSubstr("second"))));
  }
}

TEST_P(FailureOf, LeavingReleasesThoseWhoWaitWithAMismatch) {
  ThreadGroup group(3, options());
  const auto thrown = outcomes(group, [&](Group& member) {
    all_reduce(member, count(), {.tag = "first"});
    if (member.rank() == 1) return group.leave(1);
    all_reduce(member, count(), {.tag = "second"});
  });
  EXPECT_EQ(thrown[1], nullptr);
  for (const std::size_t rank : {0u, 2u}) {
    EXPECT_THAT(text_of<CollectiveMismatch>(thrown[rank]),
                AllOf(HasSubstr("group g: operation 2"), HasSubstr("rank 1 has left the group"),
                      HasSubstr("its last was operation 1, all_reduce \"first\"")));
  }
}

TEST_P(FailureOf, LeavingAfterTheLastOperationDisturbsNobody) {
  for (int round = 0; round < 50; ++round) {
    ThreadGroup group(3, options());
    on_every_rank(group, [&](Group& member) {
      for (int i = 0; i < 3; ++i) all_reduce(member, count());
      group.leave(member.rank());
    });
  }
}

TEST_P(FailureOf, NoProgressIsADeadlineForEveryoneWhoWaits) {
  ThreadGroup::Options brief = options();
  brief.time_without_progress = std::chrono::milliseconds(20);
  ThreadGroup group(4, brief);
  const auto thrown = outcomes(group, [&](Group& member) {
    if (member.rank() == 3) return;
    all_reduce(member, count(), {.tag = "psum"});
  });
  EXPECT_EQ(thrown[3], nullptr);
  for (const std::size_t rank : {0u, 1u, 2u}) {
    EXPECT_THAT(
        text_of<DeadlineExceeded>(thrown[rank]),
        AllOf(HasSubstr("nobody made progress for 0.02 s in operation 1"),
              HasSubstr("rank 3 has not arrived, before its first operation"), HasSubstr(" waits in all_reduce")));
  }
}

TEST_P(FailureOf, ADeadlineNamesTheLastOperationOfTheAbsent) {
  ThreadGroup group(2, options());
  const auto thrown = outcomes(group, [&](Group& member) {
    member.all_gather({}, {.tag = "early"});
    if (member.rank() == 0) all_reduce(member, count(), {.tag = "late", .deadline = Deadline::in({})});
  });
  EXPECT_THAT(text_of<DeadlineExceeded>(thrown[0]),
              AllOf(HasSubstr("rank 0 waits in all_reduce \"late\""),
                    HasSubstr("rank 1 has not arrived; its last was operation 1, all_gather \"early\"")));
}

TEST_P(FailureOf, ACallMayHaveADeadlineOfItsOwn) {
  ThreadGroup group(3, options());
  const auto thrown = outcomes(group, [&](Group& member) {
    if (member.rank() == 2) return;
    // Rank 1 waits without a limit of its own and is told as well.
    const Deadline deadline = member.rank() == 0 ? Deadline::in(std::chrono::milliseconds(10)) : Deadline::never();
    all_reduce(member, count(), {.deadline = deadline});
  });
  EXPECT_THAT(text_of<DeadlineExceeded>(thrown[0]), HasSubstr("the call's deadline passed"));
  EXPECT_THAT(text_of<DeadlineExceeded>(thrown[1]), HasSubstr("rank 2 has not arrived"));
}

TEST_P(FailureOf, AWrongArgumentReleasesTheOthers) {
  ThreadGroup group(2, options());
  const auto thrown = outcomes(group, [&](Group& member) {
    const std::vector<float> in(count());
    std::vector<float> out(member.rank() == 0 ? count() : count() + 1);
    const Piece one = piece(in, out);
    member.all_reduce({}, {&one, 1}, {});
  });
  text_of<ShapeError>(thrown[1]);
  EXPECT_THAT(text_of<Aborted>(thrown[0]), HasSubstr("rank 1 failed: all_reduce, piece 0 (float32): in has"));
}

TEST_P(FailureOf, ResetMakesTheGroupUsable) {
  ThreadGroup group(3, options());
  for (int round = 0; round < 20; ++round) {
    const auto thrown = outcomes(group, [&](Group& member) {
      for (int i = 0; i < member.rank(); ++i) {
        if (i == 1) group.abort(member.rank(), "round over");
        all_reduce(member, count());
      }
      all_reduce(member, count());
    });
    EXPECT_NE(thrown[2], nullptr);
    group.reset();
    on_every_rank(group, [&](Group& member) {
      for (int i = 0; i < 3; ++i) all_reduce(member, count());
    });
    group.reset();  // also without a failure
  }
}

TEST_P(FailureOf, ResetBringsBackThoseWhoLeft) {
  ThreadGroup group(2, options());
  group.leave(0);
  group.reset();
  on_every_rank(group, [&](Group& member) { all_reduce(member, count()); });
}

// With Ctrl-Z or by a debugger, for longer than the others are granted: that is no time in which nobody made progress.
TEST(Failure, AProcessThatWasStoppedGoesOn) {
  using namespace std::chrono_literals;
  ThreadGroup group(2, {.time_without_progress = 400ms, .spin = false});
  on_every_rank(group, [&](Group& member) {
    if (member.rank() == 0) {
      std::this_thread::sleep_for(50ms);
      const pid_t own = getpid();
      const pid_t waker = fork();
      ASSERT_NE(waker, -1);
      if (waker == 0) {
        constexpr timespec kStopped = {.tv_sec = 1, .tv_nsec = 0};
        nanosleep(&kStopped, nullptr);
        kill(own, SIGCONT);
        _exit(0);
      }
      kill(own, SIGSTOP);
      waitpid(waker, nullptr, 0);
      std::this_thread::sleep_for(20ms);
    }
    member.barrier({});
  });
}

// Who has begun as much as may be in flight waits for others to complete the first of it.
class FullRing : public ::testing::Test {
 protected:
  // What rank 0 throws that completes eight operations and begins one too many, while rank 1, which has begun them, does
  // `last` and completes none.
  template <class Last>
  static std::exception_ptr thrown(ThreadGroup::Options options, Last last) {
    ThreadGroup group(2, std::move(options));
    std::atomic<bool> is_full{false}, is_over{false};
    const auto wait_for = [](const std::atomic<bool>& flag) {
      while (!flag.load()) std::this_thread::yield();
    };
    return outcomes(group, [&](Group& member) {
      std::array<std::vector<float>, 9> values;
      std::vector<Pending> pending;
      const auto start = [&](std::size_t i) {
        values[i].assign(1, 1.0F);
        const Piece one = in_place(values[i]);
        pending.push_back(member.start({.operation = Operation::kAllReduce, .pieces = {&one, 1}}, {}));
      };
      for (std::size_t i = 0; i < 8; ++i) start(i);
      if (member.rank() == 1) {
        wait_for(is_full);
        last(group);
        return wait_for(is_over);
      }
      for (Pending& one : pending) one.wait();
      is_full.store(true);
      const std::shared_ptr<void> over(nullptr, [&](void*) { is_over.store(true); });
      start(8);
    })[0];
  }
};

TEST_F(FullRing, IsReleasedByAnAbort) {
  EXPECT_THAT(text_of<Aborted>(thrown(testing::patient(), [](ThreadGroup& group) { group.abort(1, "enough"); })),
              HasSubstr("rank 1 failed: enough"));
}

TEST_F(FullRing, NamesWhoHasNotCompletedWhat) {
  using namespace std::chrono_literals;
  const std::string text =
      text_of<DeadlineExceeded>(thrown({.time_without_progress = 50ms, .spin = false}, [](ThreadGroup&) {}));
  EXPECT_THAT(text, AllOf(HasSubstr("in operation 1:"), HasSubstr("rank 0 is through with"),
                          HasSubstr("rank 1 has begun all_reduce"), HasSubstr("BRIGADE_DEADLINE")));
}

TEST(Statistics, CountWaitingApartFromMoving) {
  using namespace std::chrono_literals;
  ThreadGroup group(2, testing::patient());
  on_every_rank(group, [&](Group& member) {
    if (member.rank() == 1) std::this_thread::sleep_for(30ms);
    member.barrier({});
    if (member.rank() == 0) {
      EXPECT_GE(member.statistics().waiting, 20ms);
    }

    member.reset_statistics();
    const auto start = Deadline::Clock::now();
    for (int i = 0; i < 20; ++i) all_reduce(member, 300'000);
    const auto elapsed = Deadline::Clock::now() - start;
    const Statistics spent = member.statistics();
    EXPECT_EQ(spent.calls, 20);
    EXPECT_EQ(spent.bytes, 20 * 300'000 * 4);
    EXPECT_LE(spent.waiting + spent.moving, elapsed);
  });
}

class WrongCall : public ::testing::Test {
 protected:
  template <class E, class Body>
  void expect(Body body) {
    ThreadGroup group(2, {});
    EXPECT_THROW(body(group.member(0)), E);
  }

  std::vector<float> four_ = std::vector<float>(4);
  std::vector<float> eight_ = std::vector<float>(8);
};

TEST_F(WrongCall, IsRefusedBeforeAnyoneIsWaitedFor) {
  const Piece uneven = piece(eight_, four_);
  expect<ShapeError>([&](Group& member) { member.all_reduce({}, {&uneven, 1}, {}); });
  expect<ShapeError>([&](Group& member) { member.all_gather({&uneven, 1}, {}); });
  const Piece even = piece(four_, four_);
  expect<ShapeError>([&](Group& member) { member.reduce_scatter({}, {&even, 1}, {}); });
  expect<InvalidArgument>([&](Group& member) { member.broadcast(2, {&even, 1}, {}); });
  Piece nothing = even;
  nothing.in = {};
  expect<ShapeError>([&](Group& member) { member.broadcast(0, {&nothing, 1}, {}); });
  expect<InvalidArgument>([&](Group& member) { member.broadcast(-1, {&even, 1}, {}); });

  std::vector<std::int32_t> integers(4);
  const Piece integer = in_place(integers);
  expect<InvalidArgument>([&](Group& member) { member.all_reduce({.divisor = 2}, {&integer, 1}, {}); });
  std::vector<testing::Bool> flags(4);
  const Piece flag = in_place(flags);
  expect<InvalidArgument>([&](Group& member) { member.all_reduce({}, {&flag, 1}, {}); });

  const std::vector<RankPair> outside = {{0, 2}};
  const std::vector<RankPair> source_twice = {{0, 1}, {0, 0}};
  const std::vector<RankPair> destination_twice = {{0, 1}, {1, 1}};
  for (const auto& pairs : {outside, source_twice, destination_twice}) {
    expect<InvalidArgument>([&](Group& member) { member.permute(pairs, {&even, 1}, {}); });
  }
}

TEST_F(WrongCall, OverlapInPartIsRefused) {
  const std::span<std::byte> memory = std::as_writable_bytes(std::span(eight_));
  const Piece overlapping = {.in = memory.subspan(0, 16), .out = memory.subspan(8, 16)};
  expect<InvalidArgument>([&](Group& member) { member.all_reduce({}, {&overlapping, 1}, {}); });
}

}  // namespace failure_test
}  // namespace brigade::comm
