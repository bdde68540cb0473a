#include "brigade/base/wait_word.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <ctime>

namespace brigade {
namespace {

using Clock = Deadline::Clock;

void pause_core() noexcept {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield" ::: "memory");
#endif
}

static_assert(sizeof(std::atomic<std::uint32_t>) == sizeof(std::uint32_t), "the kernel compares the word itself");

}  // namespace

void WaitWord::wake() noexcept {
  syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&value_), FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

bool WaitWord::wait_slowly(std::uint32_t seen, std::chrono::nanoseconds spin, Deadline deadline) noexcept {
  if (spin.count() > 0) {
    const auto give_up = Clock::now() + spin;
    do {
      for (int i = 0; i < 32; ++i) {  // the clock costs as much as a few pauses
        if (load() != seen) return true;
        pause_core();
      }
    } while (Clock::now() < give_up);
  }
  sleepers_.fetch_add(1, std::memory_order_seq_cst);
  bool changed = false;
  while (!(changed = value_.load(std::memory_order_seq_cst) != seen)) {
    const auto left = deadline.remaining();
    if (left <= Clock::duration::zero()) break;
    timespec timeout{};
    timeout.tv_sec = static_cast<time_t>(std::chrono::duration_cast<std::chrono::seconds>(left).count());
    timeout.tv_nsec = static_cast<long>((left % std::chrono::seconds(1)).count());
    // Returns at a wake-up, at the time-out, at a signal, or at once when the value has changed: the loop looks again.
    syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&value_), FUTEX_WAIT_PRIVATE, seen,
            deadline.is_never() ? nullptr : &timeout, nullptr, 0);
  }
  sleepers_.fetch_sub(1, std::memory_order_relaxed);
  return changed;
}

}  // namespace brigade
