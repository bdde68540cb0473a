// Sleeping until another thread changes something, without a mutex: an event count over one Linux futex.
//
// A thread that changed something calls notify_all(), which costs one load when nobody sleeps. A thread that waits
// constructs a Sleeper, looks at the condition once more, and sleeps. All accesses are sequentially consistent, so
// either the sleeper's look sees the change or the notifier sees the sleeper.
//
// std::atomic::wait has no time limit, which every wait here needs, and is no faster: a hand-over between threads that sleep
// took 35 us with this and 1,800 us with that of libstdc++ 12 on two virtual cores, 4 us with either on one.
#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <climits>
#include <cstdint>
#include <ctime>

namespace brigade {

// How long to spin before sleeping. Sleeping and being woken costs 50 to 130 us on a virtual machine, and spinning for
// as long loses at most a factor of two over the best choice in hindsight. It pays only when each thread that meets has
// a core of its own.
inline constexpr std::chrono::nanoseconds kSpinTime = std::chrono::microseconds(100);

// Where threads share cores, how often one that waits gives its core to another before it sleeps. Whoever it waits for often
// sits in the same queue, and a switch costs a microsecond where sleeping and being woken costs ten: among 4 threads on 2 cores
// an all-reduce of 256 KB took 104 us with none, 72 with 8, 45 with 16 and no less with more.
inline constexpr int kYieldsBeforeSleep = 16;

class EventCount {
 public:
  bool anyone_sleeps() const noexcept { return sleepers_.load() != 0; }

  // Call after the change, which must be a sequentially consistent store.
  void notify_all() noexcept {
    if (!anyone_sleeps()) return;
    epoch_.fetch_add(1);
    futex(FUTEX_WAKE_PRIVATE, INT_MAX, nullptr);
  }

  // Announces, while it lives, that its thread is about to sleep.
  class Sleeper {
   public:
    explicit Sleeper(EventCount& events) noexcept : events_(events) {
      events_.sleepers_.fetch_add(1);
      epoch_ = events_.epoch_.load();
    }
    ~Sleeper() { events_.sleepers_.fetch_sub(1); }
    Sleeper(const Sleeper&) = delete;
    Sleeper& operator=(const Sleeper&) = delete;

    // Returns after a notification since construction, after `limit`, or for no reason.
    void sleep(std::chrono::nanoseconds limit) noexcept {
      const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(limit);
      const timespec timeout = {.tv_sec = static_cast<std::time_t>(seconds.count()),
                                .tv_nsec = static_cast<long>((limit - seconds).count())};
      events_.futex(FUTEX_WAIT_PRIVATE, static_cast<int>(epoch_), &timeout);
    }

   private:
    EventCount& events_;
    std::uint32_t epoch_ = 0;
  };

 private:
  static_assert(sizeof(std::atomic<std::uint32_t>) == sizeof(std::uint32_t) &&
                std::atomic<std::uint32_t>::is_always_lock_free);

  void futex(int operation, int value, const timespec* timeout) noexcept {
    syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&epoch_), operation, value, timeout, nullptr, 0);
  }

  std::atomic<std::uint32_t> sleepers_{0};
  std::atomic<std::uint32_t> epoch_{0};
};

}  // namespace brigade
