// Operations that are started, and completed later.
#include <array>
#include <atomic>
#include <memory>
#include <optional>

#include "comm/support.h"

namespace brigade::comm {
namespace pending_test {

using ::testing::AllOf;
using testing::bits_of;
using ::testing::HasSubstr;
using testing::in_place;
using testing::on_every_rank;
using testing::outcomes;
using testing::reduced;
using testing::text_of;
using testing::values_of;
using testing::values_of_all;

Call sum_of(const Piece& one) { return {.operation = Operation::kAllReduce, .pieces = {&one, 1}}; }

// Few elements travel as a payload, many directly.
class PendingOf : public ::testing::TestWithParam<std::size_t> {
 protected:
  std::size_t count() const { return GetParam(); }
};
INSTANTIATE_TEST_SUITE_P(Elements, PendingOf, ::testing::Values(4, 5000, 100'000));

TEST_P(PendingOf, StartReturnsBeforeTheOthersCome) {
  ThreadGroup group(2, testing::patient());
  std::atomic<bool> started{false};
  on_every_rank(group, [&](Group& member) {
    std::vector<float> values(count(), 1.0F);
    const Piece one = in_place(values);
    if (member.rank() == 1) {
      while (!started.load()) std::this_thread::yield();
    }
    Pending pending = member.start(sum_of(one), {});
    if (member.rank() == 0) {
      EXPECT_FALSE(pending.test());
      started.store(true);
    }
    pending.wait();
    EXPECT_EQ(values, std::vector<float>(count(), 2.0F));
    EXPECT_TRUE(pending.test());
    pending.wait();
  });
}

// Also when the others do not come back to it.
TEST_P(PendingOf, AreCompletedByWhoeverWaitsOrTests) {
  for (const bool tests : {false, true}) {
    ThreadGroup group(2, testing::patient());
    std::atomic<bool> complete{false};
    on_every_rank(group, [&](Group& member) {
      std::vector<float> values(count(), 1.0F);
      const Piece one = in_place(values);
      Pending pending = member.start(sum_of(one), {});
      if (member.rank() == 0) {
        while (!complete.load()) std::this_thread::yield();
      } else if (tests) {
        while (!pending.test()) std::this_thread::yield();
      } else {
        pending.wait();
      }
      complete.store(true);
      pending.wait();
      EXPECT_EQ(values, std::vector<float>(count(), 2.0F));
    });
  }
}

// More than may be in flight, in order, whatever the order of waiting; the descriptions may die at once.
TEST_P(PendingOf, ManyAreCarriedOutInOrder) {
  const std::size_t operations = count() > 10'000 ? 10 : 30;
  for (const int ranks : {2, 3}) {
    ThreadGroup group(ranks, testing::patient());
    on_every_rank(group, [&](Group& member) {
      std::vector<std::vector<float>> values;
      for (unsigned i = 0; i < operations; ++i) values.push_back(values_of<float>(member.rank(), count() + i, i));
      std::vector<Pending> pending;
      for (std::size_t i = 0; i < operations; ++i) {
        const std::vector<Piece> pieces = {in_place(values[i])};
        pending.push_back(member.start({.operation = Operation::kAllReduce, .pieces = pieces}, {}));
      }
      if (member.rank() == 1) std::reverse(pending.begin(), pending.end());
      for (Pending& one : pending) one.wait();
      for (unsigned i = 0; i < operations; ++i) {
        EXPECT_EQ(bits_of(values[i]), bits_of(reduced<float>({}, values_of_all<float>(ranks, count() + i, i))));
      }
    });
  }
}

TEST_P(PendingOf, TestAloneCompletesThem) {
  ThreadGroup group(3, testing::patient());
  on_every_rank(group, [&](Group& member) {
    std::vector<float> values(count(), 1.0F);
    const Piece one = in_place(values);
    Pending pending = member.start(sum_of(one), {});
    while (!pending.test()) std::this_thread::yield();
    EXPECT_EQ(values, std::vector<float>(count(), 3.0F));
  });
}

TEST_P(PendingOf, ACallInBetweenTakesItsTurn) {
  ThreadGroup group(3, testing::patient());
  on_every_rank(group, [&](Group& member) {
    std::vector<float> first(count(), 1.0F), second(count(), 2.0F);
    const Piece one = in_place(first), two = in_place(second);
    Pending pending = member.start(sum_of(one), {.tag = "first"});
    member.all_reduce({}, {&two, 1}, {.tag = "second"});
    EXPECT_EQ(first, std::vector<float>(count(), 3.0F));  // an earlier one is complete when a later one is
    EXPECT_EQ(second, std::vector<float>(count(), 6.0F));
    EXPECT_TRUE(pending.test());
  });
}

// Rank 0 is needed for what it has started in the whole group while it waits in a part.
TEST_P(PendingOf, AreCarriedOnWhileOneWaitsInAnotherGroup) {
  ThreadGroup group(3, testing::patient());
  std::atomic<bool> whole_done{false};
  on_every_rank(group, [&](Group& member) {
    std::vector<float> values(count(), 1.0F), others(count(), 1.0F);
    const Piece one = in_place(values), other = in_place(others);
    Pending pending = member.start(sum_of(one), {});
    if (member.rank() == 0) {
      member.among(std::vector<int>{0, 1}).all_reduce({}, {&other, 1}, {});
      pending.wait();
    } else {
      pending.wait();
      if (member.rank() == 1) member.among(std::vector<int>{0, 1}).all_reduce({}, {&other, 1}, {});
    }
    EXPECT_EQ(values, std::vector<float>(count(), 3.0F));
  });
}

TEST_P(PendingOf, AMismatchIsThrownByWaiting) {
  ThreadGroup group(2, {.spin = false});
  const auto thrown = outcomes(group, [&](Group& member) {
    std::vector<float> values(count() + static_cast<std::size_t>(member.rank()), 1.0F);
    const Piece one = in_place(values);
    Pending pending = member.start(sum_of(one), {.tag = "psum"});
    try {
      pending.wait();
    } catch (...) {
      EXPECT_EQ(values, std::vector<float>(values.size(), 1.0F)) << "something was written";
      throw;
    }
  });
  for (const auto& one : thrown) {
    EXPECT_THAT(text_of<CollectiveMismatch>(one), AllOf(HasSubstr("rank 0 called"), HasSubstr("rank 1 called")));
  }
}

TEST_P(PendingOf, AnAbortIsThrownByWaitingAndByTesting) {
  ThreadGroup group(3, {.spin = false});
  const auto thrown = outcomes(group, [&](Group& member) {
    if (member.rank() == 2) return group.abort(2, "out of memory");
    std::vector<float> values(count());
    const Piece one = in_place(values);
    Pending pending = member.start(sum_of(one), {});
    if (member.rank() == 0) pending.wait();
    while (!pending.test()) std::this_thread::yield();
  });
  for (const std::size_t rank : {0u, 1u}) {
    EXPECT_THAT(text_of<Aborted>(thrown[rank]), HasSubstr("rank 2 failed: out of memory"));
  }
}

TEST_P(PendingOf, DroppedOnesReleaseTheOthers) {
  ThreadGroup group(3, {.spin = false, .name = "group g"});
  const auto thrown = outcomes(group, [&](Group& member) {
    std::vector<float> values(count());
    const Piece one = in_place(values);
    if (member.rank() == 1) {
      Pending pending = member.start(sum_of(one), {.tag = "psum"});
      return;
    }
    if (member.rank() == 0) member.start(sum_of(one), {.tag = "psum"}).wait();
  });
  EXPECT_EQ(thrown[1], nullptr);
  EXPECT_THAT(text_of<Aborted>(thrown[0]),
              AllOf(HasSubstr("group g: rank 1 gave up operation 1"), HasSubstr("before it was complete"),
                    HasSubstr("all_reduce \"psum\"")));
}

TEST_P(PendingOf, ADeadlineEndsTheWait) {
  ThreadGroup group(2, {.spin = false});
  const auto thrown = outcomes(group, [&](Group& member) {
    if (member.rank() == 1) return;
    std::vector<float> values(count());
    const Piece one = in_place(values);
    member.start(sum_of(one), {.deadline = Deadline::in(std::chrono::milliseconds(5))}).wait();
  });
  EXPECT_THAT(text_of<DeadlineExceeded>(thrown[0]), HasSubstr("rank 1 has not arrived"));
}

TEST_P(PendingOf, PollingEndsLikeWaiting) {
  using namespace std::chrono_literals;
  const auto poll = [this](ThreadGroup::Options options, Deadline deadline) {
    ThreadGroup group(2, std::move(options));
    return outcomes(group, [&](Group& member) {
      if (member.rank() == 1) return;
      std::vector<float> values(count());
      const Piece one = in_place(values);
      Pending pending = member.start(sum_of(one), {.deadline = deadline});
      while (!pending.test()) std::this_thread::sleep_for(1ms);
    })[0];
  };
  EXPECT_THAT(text_of<DeadlineExceeded>(poll({.spin = false}, Deadline::in(5ms))), HasSubstr("the call's deadline"));
  EXPECT_THAT(text_of<DeadlineExceeded>(poll({.time_without_progress = 20ms, .spin = false}, Deadline::never())),
              HasSubstr("nobody made progress for 0.02 s"));
}

// Rank 1 comes to what rank 0 polls only after it has begun a ninth operation elsewhere, for which rank 0 has to complete the
// first one there.
TEST_P(PendingOf, PollingCarriesOnWhatWasBegunElsewhere) {
  ThreadGroup group(2, testing::patient());
  on_every_rank(group, [&](Group& member) {
    Group& reversed = member.among(std::array{1, 0});
    std::vector<std::vector<float>> values(9, std::vector<float>(count(), 1.0F));
    std::vector<Pending> pending;
    const auto start = [&](std::size_t i) {
      const Piece one = in_place(values[i]);
      pending.push_back(member.start(sum_of(one), {}));
    };
    for (std::size_t i = 0; i < 8; ++i) start(i);
    std::vector<float> other(count(), 1.0F);
    const Piece one = in_place(other);
    if (member.rank() == 0) {
      Pending polled = reversed.start(sum_of(one), {});
      while (!polled.test()) std::this_thread::yield();
      start(8);
    } else {
      start(8);
      reversed.all_reduce({}, {&one, 1}, {});
    }
    for (Pending& each : pending) each.wait();
    EXPECT_EQ(other, std::vector<float>(count(), 2.0F));
  });
}

TEST_P(PendingOf, MovesLeaveNothingBehind) {
  ThreadGroup group(2, testing::patient());
  on_every_rank(group, [&](Group& member) {
    std::vector<float> values(count(), 1.0F), others(count(), 2.0F);
    const Piece one = in_place(values), two = in_place(others);
    std::optional<Pending> kept;
    {
      Pending first = member.start(sum_of(one), {});
      kept.emplace(std::move(first));
    }
    Pending second = member.start(sum_of(two), {});
    *kept = std::move(second);  // the first is still held by `second` now
    kept->wait();
    second.wait();
    EXPECT_EQ(values, std::vector<float>(count(), 2.0F));
    EXPECT_EQ(others, std::vector<float>(count(), 4.0F));
  });
}

// As a body does that returns while a handle lives on elsewhere.
TEST_P(PendingOf, LeavingWithOneInFlightReleasesTheOthers) {
  ThreadGroup group(2, {.spin = false});
  std::vector<float> leaked(count());
  std::optional<Pending> outlives;
  const auto thrown = outcomes(group, [&](Group& member) {
    std::vector<float> values(count());
    const Piece one = in_place(member.rank() == 0 ? leaked : values);
    if (member.rank() == 0) {
      outlives.emplace(member.start(sum_of(one), {.tag = "psum"}));
      return group.leave(0);
    }
    member.start(sum_of(one), {.tag = "psum"}).wait();
    member.barrier({});
  });
  EXPECT_NE(thrown[1], nullptr);
  group.reset();
  outlives.reset();  // of before the reset, so it disturbs nobody
  on_every_rank(group, [&](Group& member) {
    std::vector<float> values(count(), 1.0F);
    const Piece one = in_place(values);
    member.all_reduce({}, {&one, 1}, {});
    EXPECT_EQ(values, std::vector<float>(count(), 2.0F));
  });
}

// A participant that unwinds gives its memory back while others are carrying out what it has started.
TEST_P(PendingOf, NobodyTouchesTheMemoryOfOneThatUnwinds) {
  constexpr int kRanks = 4;
  ThreadGroup group(kRanks, testing::patient());
  std::mt19937 dice(3);
  for (int round = 0; round < (count() > 10'000 ? 40 : 200); ++round) {
    const int who = static_cast<int>(dice() % kRanks);
    const auto when = dice() % 6;
    const auto body = [&](Group& member) {
      std::vector<std::unique_ptr<float[]>> memory;
      std::vector<Pending> pending;  // destroyed first
      for (unsigned i = 0; i < 6; ++i) {
        if (member.rank() == who && i == when) throw std::runtime_error("villain");
        memory.push_back(std::make_unique<float[]>(count()));
        const std::span<std::byte> bytes = std::as_writable_bytes(std::span(memory.back().get(), count()));
        const Piece one = {.in = bytes, .out = bytes};
        pending.push_back(member.start(sum_of(one), {}));
        if (i % 3 == 2) pending[i - 1].wait();
      }
      for (Pending& one : pending) one.wait();
    };
    const auto thrown = outcomes(group, [&](Group& member) {
      try {
        body(member);
      } catch (const std::exception& error) {
        group.abort(member.rank(), error.what());  // after unwinding
        throw;
      }
    });
    for (const auto& one : thrown) EXPECT_NE(one, nullptr);
    group.reset();
  }
}

}  // namespace pending_test
}  // namespace brigade::comm
