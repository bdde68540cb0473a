#include "brigade/base/wait_word.h"

#include <hwy/cache_control.h>  // Pause

#include <thread>

namespace brigade {

bool WaitWord::wait_slowly(std::uint32_t seen, std::chrono::nanoseconds spin, Deadline deadline) noexcept {
  using Clock = Deadline::Clock;
  constexpr int kLooksPerReading = 32;  // the clock costs as much as a few pauses
  for (const auto give_up = Clock::now() + spin; spin.count() > 0 && Clock::now() < give_up;) {
    for (int i = 0; i < kLooksPerReading; ++i) {
      if (load() != seen) return true;
      hwy::Pause();
    }
  }
  for (int i = spin.count() > 0 ? 0 : kYieldsBeforeSleep; i > 0; --i) {
    std::this_thread::yield();
    if (load() != seen) return true;
  }
  while (true) {
    EventCount::Sleeper sleeper(changes_);
    if (value_.load() != seen) return true;
    const auto left = deadline.remaining();
    if (left <= Clock::duration::zero()) return false;
    sleeper.sleep(left);
  }
}

}  // namespace brigade
