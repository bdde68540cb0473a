// Which device holds the others up: its time in forward and backward is several times that of the rest, step after step.
//
// Medians of the last steps are compared, so that a step in which the system gave a core to someone else does not count.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "brigade/runtime/device.h"
#include "brigade/train/step_report.h"
#include "seat.h"

namespace brigade::training {

class Stragglers {
 public:
  static constexpr double kTimes = 5;  // as long as the others, to be named
  static constexpr std::size_t kSteps = 9;

  // What each device took for its leaves in one step; 0 for one that had none. Returns the slowest when it is slow enough.
  // None before kSteps steps, and of fewer than two devices.
  std::optional<SlowDevice> add(std::span<const std::chrono::nanoseconds> taken);

  // The same of the step that is through. The first time that a device is slow, a warning in the log names it.
  std::optional<SlowDevice> add(const Seats& seats, const std::vector<Device>& devices, std::int64_t step);

 private:
  std::vector<std::array<double, kSteps>> last_;  // of each device, in turn
  std::size_t steps_ = 0;
  std::set<int> named_;
};

}  // namespace brigade::training
