// A schedule as a picture for a terminal.
//
//   auto rate = schedule::linear_scaling({.base = 0.02, .base_batch = 64}).warmup(20).cosine(100).bind(128);
//   std::cout << schedule::plot(rate, 100, {.width = 44, .height = 9});
//
//   0.04 ┤     ⢀⡴⠚⠉⠉⠓⠒⠲⢤⣀
//        │   ⣀⡴⠋        ⠈⠙⠲⢤⣀
//        │ ⣠⠖⠃              ⠈⠓⢦⣀
//   0.02 ┤⠚⠁                   ⠈⠳⢤⡀
//        │                        ⠉⠳⢤⡀
//        │                           ⠉⠓⠦⣄⡀
//      0 ┤                               ⠉⠓⠦⠤⢤⣀⣀
//        └┬─────────────────┬──────────────────┬
//   step  0                 49                99
#pragma once

#include <cstdint>
#include <string>

#include "brigade/optim/schedule.h"

namespace brigade::schedule {

struct PlotOptions {
  int width = 72;   // columns of the widest line, the rates on the left included; 24 to 1000
  int height = 13;  // lines, the two of the step axis included; 4 to 1000
};

// The rates of steps 0 to steps - 1. Each step has an equal share of the width, and a column shows every step that it
// overlaps; of more than a million steps, about a million evenly spread ones. The axis of rates begins at 0. Lines end
// with a newline and no blanks before it; each character takes one column of a terminal. Throws InvalidArgument for
// fewer steps than 1 and for a size outside its bounds, and whatever the rate throws.
std::string plot(const LearningRate& rate, std::int64_t steps, PlotOptions options = {});

}  // namespace brigade::schedule
