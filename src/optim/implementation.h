// What stands behind a Rule. Whoever implements one is handed steps and slices that Rule has checked.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "brigade/optim/step.h"

namespace brigade::optim {

class RuleImplementation {
 public:
  virtual ~RuleImplementation() = default;

  virtual std::string_view name() const = 0;
  virtual std::string describe() const = 0;
  virtual std::span<const std::string_view> state_names() const = 0;
  virtual double initial_value(std::size_t /*state*/) const { return 0; }
  virtual std::shared_ptr<const RuleImplementation> with_weight_decay(double weight_decay) const = 0;

  virtual bool layerwise() const = 0;
  virtual void update(const Slice<float>& slice, const Step& step) const;  // what is not overridden refuses
  virtual void update(const Slice<double>& slice, const Step& step) const;
  virtual void direct(const Slice<float>& slice, const Step& step) const;
  virtual void direct(const Slice<double>& slice, const Step& step) const;
  virtual double ratio(double parameter_norm, double direction_norm) const;
  virtual void apply(const Slice<float>& slice, const Step& step, double ratio) const;
  virtual void apply(const Slice<double>& slice, const Step& step, double ratio) const;

 protected:
  RuleImplementation() = default;
  RuleImplementation(const RuleImplementation&) = default;
  RuleImplementation& operator=(const RuleImplementation&) = delete;
};

}  // namespace brigade::optim
