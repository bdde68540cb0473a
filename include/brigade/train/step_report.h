// What one step did.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "brigade/train/compression.h"

namespace brigade::training {

// Where a step's time went, on the device that was slowest to come to the update.
struct StepTimes {
  std::chrono::nanoseconds data{0};  // cutting and copying rows
  std::chrono::nanoseconds forward{0};
  std::chrono::nanoseconds backward{0};       // with the reduction that it hides
  std::chrono::nanoseconds communication{0};  // waiting for the reduction after backward
  std::chrono::nanoseconds update{0};
  std::chrono::nanoseconds all{0};  // of the call
};

// One that takes several times as long for its leaves as the others do.
struct SlowDevice {
  int device = 0;    // position
  double times = 0;  // as long as the median of the others
};

struct StepReport {
  std::int64_t step = 0;  // counted from 0
  std::int64_t rows = 0;
  double loss = 0;    // of the rows of the step, before its update
  double weight = 0;  // the sum of the counts that the loss was divided by
  std::map<std::string, double> metrics = {};

  double learning_rate = 0;
  double gradient_norm = 0;  // of the averaged gradient, before clipping
  double clip_factor = 1;
  double loss_scale = 1;
  bool skipped = false;  // gradients were not finite, so nothing was updated

  // Gradient noise scale (McCandlish et al. 2018), in rows, smoothed: batches beyond it stop paying. None while it is not
  // measured, or cannot be: it takes two leaves or more.
  std::optional<double> noise_scale = {};

  std::vector<std::string> unused_parameters =
      {};  // without a gradient on any device: left as they are, with their state

  // Of all parameters and optimizer state after this step, the same whatever the number of devices is: two runs are equal as
  // long as these are. None in steps that are not audited.
  std::optional<std::uint64_t> digest = {};
  std::string healed = {};  // what had changed by itself and was put back before this step

  std::optional<SlowDevice> slow_device = {};  // that holds the others up, by the median of the last 9 steps

  std::int64_t leaves = 0;
  std::int64_t reduced_bytes = 0;                     // given to the reduction by all devices
  std::optional<CompressionReport> compression = {};  // of compressed steps
  StepTimes times = {};

  double rows_per_second() const {
    const double seconds = std::chrono::duration<double>(times.all).count();
    return seconds > 0 ? static_cast<double>(rows) / seconds : 0;
  }
};

}  // namespace brigade::training
