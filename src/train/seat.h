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
  StepTimes times = {};
};

using Seats = std::vector<Seat>;  // [position]

// Of the device that was last to come to the end of its leaves, and so waited least.
inline StepTimes slowest(const Seats& seats) {
  const auto waited = [](const Seat& seat) { return seat.times.communication; };
  return std::ranges::min_element(seats, {}, waited)->times;
}

}  // namespace brigade::training
