// What one update of parameters is told: the numbers of the step, and where parameters, gradient and state lie.
#pragma once

#include <cstdint>
#include <limits>
#include <span>

namespace brigade::optim {

// The gradient that a rule sees is clamp(gradient / divisor * clip_factor, -clip_value, clip_value): a quotient rounded
// once to the parameters' dtype, then a product, rounded as well. A NaN stays one.
struct Step {
  double learning_rate = 0;
  std::int64_t index =
      0;               // updates that these parameters had before; at 0 a rule starts its state and does not read it
  double divisor = 1;  // total weight of the batch, times the loss scale
  double clip_factor = 1;  // clipping by global norm, see clip.h
  double clip_value = std::numeric_limits<double>::infinity();
};

// A range of the elements of one tensor, or a whole one, T being float or double. Spans are of one length and overlap
// nowhere.
template <class T>
struct Slice {
  std::span<T> parameters = {};
  std::span<T> gradient = {};                // written by layer-wise rules only
  std::span<const std::span<T>> state = {};  // the rule's buffers, in the order of its state_names()
};

}  // namespace brigade::optim
