// What belongs to one device of a trainer, and is touched by its thread only while a step runs.
#pragma once

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

}  // namespace brigade::training
