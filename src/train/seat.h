// What belongs to one device of a trainer, and is touched by its thread only while a step runs.
#pragma once

#include <algorithm>
#include <memory>
#include <vector>

#include "brigade/train/step_report.h"
#include "gradient_exchange.h"
#include "gradient_taps.h"
#include "leaf_turns.h"

namespace brigade::training {

struct Seat {
  std::unique_ptr<GradientTaps> taps;
  std::unique_ptr<GradientExchange> exchange;
  std::unique_ptr<LeafTurns> turns;
  StepTimes times = {};       // of the step so far
  StepTimes kept_times = {};  // of its parts that are through
};

using Seats = std::vector<Seat>;  // [position]

// Of the device that took longest for its leaves.
inline StepTimes slowest(const Seats& seats) {
  const auto busy = [](const Seat& seat) { return seat.times.data + seat.times.forward + seat.times.backward; };
  return std::ranges::max_element(seats, {}, busy)->times;
}

}  // namespace brigade::training
