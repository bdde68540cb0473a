// The factor of the loss, from step to step.
#pragma once

#include <cstdint>

#include "brigade/train/options.h"

namespace brigade::training {

class LossScaler {
 public:
  explicit LossScaler(const LossScale& options) : options_(options), value_(options.initial) {}

  double value() const noexcept { return value_; }
  bool is_dynamic() const noexcept { return options_.interval > 0; }

  // A step has ended, whose gradients were finite, or were not.
  void count(bool finite) noexcept {
    if (!is_dynamic()) return;
    if (!finite) {
      value_ *= options_.backoff;
      finite_steps_ = 0;
    } else if (++finite_steps_ % options_.interval == 0) {
      value_ *= options_.growth;
    }
  }

  // Calls f(name, number) with everything it remembers, for checkpoints; f may change the numbers.
  template <class F>
  void visit(F f) {
    f("loss_scale", value_);
    f("finite_steps", finite_steps_);
  }

 private:
  const LossScale options_;
  double value_;
  std::int64_t finite_steps_ = 0;  // in a row
};

}  // namespace brigade::training
