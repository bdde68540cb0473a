// bfloat16 arithmetic around a loss function, by libtorch's autocast.
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <optional>

#include "brigade/train/options.h"

namespace brigade::training {

// Whether operators cast their arguments in a thread, and to what: on the CPU, and on CUDA devices.
class AutocastState {
 public:
  // Of the calling thread.
  static AutocastState current();

  // That of a CPU that casts to `type`.
  AutocastState with_cpu(at::ScalarType type) const;

  // Gives it to the calling thread.
  void apply() const;

 private:
  struct Casts {
    bool on = false;
    at::ScalarType type = at::kBFloat16;
  };
  std::array<Casts, 2> casts_ = {};
};

// A state of autocast, for the calling thread while it lives. Casts of parameters are not kept: those of another scope would have
// no graph, or one that is gone.
class AutocastScope {
 public:
  explicit AutocastScope(const AutocastState& state);
  ~AutocastScope();
  AutocastScope(const AutocastScope&) = delete;
  AutocastScope& operator=(const AutocastScope&) = delete;

 private:
  AutocastState before_;
  bool kept_casts_;
};

// The arithmetic that the options ask for.
class PrecisionScope {
 public:
  explicit PrecisionScope(Precision precision);

 private:
  std::optional<AutocastScope> casts_;
};

}  // namespace brigade::training
