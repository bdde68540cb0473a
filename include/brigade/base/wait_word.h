// A 32-bit word that threads wait on: they spin for a while, then sleep until it changes.
//
// std::atomic::wait has no deadline, and std::barrier goes to the kernel for every meeting. Here a change costs no
// system call while nobody sleeps, and a sleeper gives up at its deadline (Linux futex).
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

#include "brigade/base/deadline.h"

namespace brigade {

class WaitWord {
 public:
  // Spinning for about as long as a wake-up costs (50 to 130 us on a virtual machine) is at most twice as dear as the
  // best choice in hindsight. It pays only when every thread that meets has a core of its own; otherwise spin for zero.
  static constexpr std::chrono::nanoseconds kSpin = std::chrono::microseconds(100);

  std::uint32_t load() const noexcept { return value_.load(std::memory_order_acquire); }

  // Stores and wakes all who wait. What was written before is visible to them.
  void store(std::uint32_t value) noexcept {
    // Sequentially consistent with `sleepers_`, so that either this thread sees the sleeper or the sleeper sees the
    // value.
    value_.store(value, std::memory_order_seq_cst);
    if (sleepers_.load(std::memory_order_seq_cst) != 0) wake();
  }

  // Adds, wakes all who wait, and returns the new value.
  std::uint32_t add(std::uint32_t amount) noexcept {
    const std::uint32_t value = value_.fetch_add(amount, std::memory_order_seq_cst) + amount;
    if (sleepers_.load(std::memory_order_seq_cst) != 0) wake();
    return value;
  }

  // Returns true once the word differs from `seen`, false when the deadline passes first.
  bool wait_while(std::uint32_t seen, std::chrono::nanoseconds spin, Deadline deadline = Deadline::never()) noexcept {
    return load() != seen || wait_slowly(seen, spin, deadline);
  }

 private:
  void wake() noexcept;
  bool wait_slowly(std::uint32_t seen, std::chrono::nanoseconds spin, Deadline deadline) noexcept;

  std::atomic<std::uint32_t> value_{0};
  std::atomic<std::uint32_t> sleepers_{0};
};

}  // namespace brigade
