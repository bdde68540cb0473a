// Which device holds the others up: its time in forward and backward is several times that of the rest, step after step.
//
// Medians of the last steps are compared, so that a step in which the system gave a core to someone else does not count.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "brigade/train/step_report.h"

namespace brigade::training {

class Stragglers {
 public:
  static constexpr double kTimes = 5;  // as long as the others, to be named
  static constexpr std::size_t kSteps = 9;

  // What each device took for its leaves in one step; 0 for one that had none. Returns the slowest when it is slow enough.
  // None before kSteps steps, and of fewer than two devices.
  std::optional<SlowDevice> add(std::span<const std::chrono::nanoseconds> taken);

 private:
  std::vector<std::array<double, kSteps>> last_;  // of each device, in turn
  std::size_t steps_ = 0;
};

}  // namespace brigade::training
