#include "brigade/base/wait_word.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace brigade {
namespace wait_word_test {

using namespace std::chrono_literals;

TEST(WaitWord, ReturnsAtOnceWhenTheValueDiffers) {
  WaitWord word;
  word.store(3);
  EXPECT_TRUE(word.wait_while(2, 0ns, Deadline::in(-1s)));
}

TEST(WaitWord, GivesUpAtTheDeadlineSpinningOrNot) {
  WaitWord word;
  EXPECT_FALSE(word.wait_while(0, 0ns, Deadline::in(1ms)));
  EXPECT_FALSE(word.wait_while(0, kSpinTime, Deadline::in(1ms)));
}

// Two threads hand a counter back and forth. A lost wake-up would leave them asleep until the deadline.
void hand_over(std::chrono::nanoseconds spin) {
  constexpr std::uint32_t kTurns = 2000;
  WaitWord word;
  std::uint32_t plain = 0;  // guarded by the word alone
  bool timed_out = false;
  const auto play = [&](std::uint32_t first) {
    for (std::uint32_t turn = first; turn < kTurns; turn += 2) {
      std::uint32_t seen = 0;
      while ((seen = word.load()) != turn) {
        if (!word.wait_while(seen, spin, Deadline::in(30s))) timed_out = true;
        if (timed_out) return;
      }
      ++plain;
      word.store(turn + 1);
    }
  };
  std::thread other(play, 1);
  play(0);
  other.join();
  EXPECT_FALSE(timed_out);
  EXPECT_EQ(plain, kTurns);
}

TEST(WaitWord, LosesNoWakeUpWhenWaitersSleep) { hand_over(0ns); }
TEST(WaitWord, LosesNoWakeUpWhenWaitersSpin) { hand_over(kSpinTime); }

TEST(WaitWord, WakesEveryWaiter) {
  WaitWord word;
  WaitWord arrived;
  std::vector<std::thread> threads;
  for (int i = 0; i < 16; ++i) {
    threads.emplace_back([&] {
      arrived.add(1);
      EXPECT_TRUE(word.wait_while(0, 0ns, Deadline::in(30s)));
    });
  }
  for (std::uint32_t seen = 0; (seen = arrived.load()) < 16;) arrived.wait_while(seen, 0ns, Deadline::in(30s));
  EXPECT_EQ(word.add(5), 5U);
  for (auto& thread : threads) thread.join();
}

}  // namespace wait_word_test
}  // namespace brigade
