// The thread that looks for launches that hang.
#pragma once

#include <chrono>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "brigade/runtime/watchdog.h"

namespace brigade {

class Watched {
 public:
  using Clock = std::chrono::steady_clock;

  // A table for people when it hangs, and it was not told so a deadline ago. On the watchdog's thread.
  virtual std::optional<std::string> hang(Clock::time_point now) = 0;

 protected:
  ~Watched() = default;
};

class Watchdog {
 public:
  static Watchdog& instance();

  void add(Watched& one);
  void remove(Watched& one);  // nothing is asked of it afterwards
  void set_action(HangAction action);

 private:
  Watchdog();
  void run();

  const std::chrono::milliseconds pause_;
  std::mutex mutex_;
  std::vector<Watched*> watched_;
  HangAction action_;
};

}  // namespace brigade
