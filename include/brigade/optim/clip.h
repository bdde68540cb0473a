// Limits on gradients, as an option of a training step: none, on the norm over all parameters, or on every value.
//
//   const optim::Clip clip = optim::clip_norm(1.0);
//   rule.update(slice, {.clip_factor = clip.factor(norm), .clip_value = clip.value(), ...});
//
// As in torch.nn.utils.clip_grad_norm_, gradients are multiplied by min(1, max_norm / (norm + 1e-6)), the norm being that
// of all gradients together. The factor is computed in float32, with torch's roundings for float32 gradients.
// optax.clip_by_global_norm leaves out the 1e-6, and leaves gradients alone below max_norm exactly; the two differ by a
// millionth of the norm's inverse. Values are held in [-limit, limit] in both.
#pragma once

#include <limits>
#include <string>

namespace brigade::optim {

class Clip {
 public:
  Clip() = default;  // clips nothing

  bool needs_norm() const { return max_norm_ != kUnlimited; }

  // Step::clip_factor for a global norm; 1 unless needs_norm(). NaN for a norm that is not finite, which no update takes:
  // such a step is to be skipped, as any factor would leave infinities or NaN.
  double factor(double norm) const;

  double value() const { return max_value_; }  // Step::clip_value

  std::string describe() const;  // "to a global norm of 1", "to values of 0.3", "off"

 private:
  friend Clip clip_norm(double max_norm);
  friend Clip clip_value(double limit);

  static constexpr double kUnlimited = std::numeric_limits<double>::infinity();
  double max_norm_ = kUnlimited;
  double max_value_ = kUnlimited;
};

// Both throw InvalidArgument for a limit that is not finite and above 0.
Clip clip_norm(double max_norm);
Clip clip_value(double limit);

}  // namespace brigade::optim
