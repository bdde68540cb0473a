// Which devices of an axis are in its body, for the watchdog.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "brigade/runtime/device.h"
#include "watchdog.h"

namespace brigade {

class Presence final : public Watched {
 public:
  // `what` says whose launches they are: "the pmap over axis "devices" at main.cpp:12".
  Presence(std::string what, std::vector<Device> devices);
  ~Presence();
  Presence(const Presence&) = delete;
  Presence& operator=(const Presence&) = delete;

  // A launch begins: every device is expected to come and to leave.
  void begin() noexcept;
  void leave(int position) noexcept { at(position).store(true, std::memory_order_relaxed); }
  // On the device's thread, before leave().
  void fail(int position, const std::string& text) noexcept;
  void end() noexcept { runs_.store(false, std::memory_order_relaxed); }

  std::optional<std::string> hang(Clock::time_point now) override;

 private:
  std::atomic<bool>& at(int position) noexcept { return has_left_[static_cast<std::size_t>(position)]; }

  const std::string what_;
  const std::vector<Device> devices_;
  std::vector<std::atomic<bool>> has_left_;
  std::atomic<bool> runs_{false};

  std::mutex mutex_;  // of what follows the first failure
  std::optional<Clock::time_point> failed_;
  std::optional<Clock::time_point> told_;
  std::vector<std::string> failures_;  // of each device; empty where there is none
  std::atomic<bool> has_failures_{false};
};

}  // namespace brigade
