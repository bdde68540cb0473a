// A 32-bit word that threads wait on: they spin for a while, then sleep until it changes or a deadline passes.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

#include "brigade/base/deadline.h"
#include "brigade/base/event_count.h"

namespace brigade {

class WaitWord {
 public:
  std::uint32_t load() const noexcept { return value_.load(std::memory_order_acquire); }

  // Stores and wakes all who wait. What was written before is visible to them.
  void store(std::uint32_t value) noexcept {
    value_.store(value);
    changes_.notify_all();
  }

  // Adds, wakes all who wait, and returns the new value.
  std::uint32_t add(std::uint32_t amount) noexcept {
    const std::uint32_t value = value_.fetch_add(amount) + amount;
    changes_.notify_all();
    return value;
  }

  // Returns true once the word differs from `seen`, false when the deadline passes first.
  bool wait_while(std::uint32_t seen, std::chrono::nanoseconds spin, Deadline deadline = Deadline::never()) noexcept {
    return load() != seen || wait_slowly(seen, spin, deadline);
  }

 private:
  bool wait_slowly(std::uint32_t seen, std::chrono::nanoseconds spin, Deadline deadline) noexcept;

  std::atomic<std::uint32_t> value_{0};
  EventCount changes_;
};

}  // namespace brigade
