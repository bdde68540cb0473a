// A point on the steady clock after which a wait gives up. A jump of the wall clock never fires one.
#pragma once

#include <chrono>

namespace brigade {

class Deadline {
 public:
  using Clock = std::chrono::steady_clock;

  static Deadline never() noexcept { return Deadline(Clock::time_point::max()); }

  // `timeout` from now; never() when the sum would overflow.
  static Deadline in(Clock::duration timeout) noexcept {
    const Clock::time_point now = Clock::now();
    return timeout > Clock::time_point::max() - now ? never() : Deadline(now + timeout);
  }

  bool is_never() const noexcept { return at_ == Clock::time_point::max(); }
  bool expired() const noexcept { return !is_never() && Clock::now() >= at_; }

  // Zero once expired; duration::max() when there is no deadline.
  Clock::duration remaining() const noexcept {
    if (is_never()) return Clock::duration::max();
    const Clock::time_point now = Clock::now();
    return now >= at_ ? Clock::duration::zero() : at_ - now;
  }

 private:
  explicit Deadline(Clock::time_point at) noexcept : at_(at) {}

  Clock::time_point at_;
};

}  // namespace brigade
