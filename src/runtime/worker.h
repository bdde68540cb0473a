// A thread that runs what it is handed, one job at a time, and waits for the next.
#pragma once

#include <c10/util/FunctionRef.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>

#include "brigade/base/wait_word.h"

namespace brigade {

class Worker {
 public:
  // `prepare` runs first on the new thread. Throws std::system_error when no thread can be started. A Worker that was made
  // must never be destroyed, as its thread waits inside it.
  template <class Prepare>
  explicit Worker(Prepare prepare) {
    std::thread([this, prepare] {
      prepare();
      serve();
    }).detach();  // workers live until the process ends: exit() may be called from a body, which could not join itself
  }

  // Hands over a job, which must not throw and must stay alive until wait() returns.
  void post(c10::function_ref<void()> job) noexcept {
    job_ = job;
    requested_.add(1);
  }

  // Returns once the posted job has run; what it wrote is visible then.
  void wait(std::chrono::nanoseconds spin) noexcept {
    const std::uint32_t target = requested_.load();
    for (std::uint32_t seen = 0; (seen = finished_.load()) != target;) finished_.wait_while(seen, spin);
  }

  // How long the worker looks for its next job before it sleeps.
  void set_spin(std::chrono::nanoseconds spin) noexcept { spin_ns_.store(spin.count(), std::memory_order_relaxed); }

 private:
  void serve() noexcept {
    for (std::uint32_t done = 0;; ++done) {
      requested_.wait_while(done, std::chrono::nanoseconds(spin_ns_.load(std::memory_order_relaxed)));
      job_();
      finished_.store(done + 1);
    }
  }

  // The caller writes the first line and the worker the second: apart, so that neither steals the other's while it
  // spins.
  alignas(64) WaitWord requested_;
  c10::function_ref<void()> job_;
  std::atomic<std::int64_t> spin_ns_{0};
  alignas(64) WaitWord finished_;
};

}  // namespace brigade
