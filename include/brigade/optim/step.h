// What update rules share.
//
// A rule is a small value with three members: state_buffers(), how many numbers it keeps per parameter, and update()
// over flat spans and over tensors. It holds options only. State belongs to the caller, so that slices of one parameter
// can be updated on different devices, and checkpointed.
#pragma once

#include <cstdint>

namespace brigade::optim {

struct Step {
  double learning_rate = 0;
  std::int64_t index = 0;  // updates that these parameters had before; 0 makes the rule start its state
};

}  // namespace brigade::optim
