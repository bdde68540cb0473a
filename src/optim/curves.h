// The curves that a rate may follow after its warm-up, one class for each kind.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "brigade/optim/schedule.h"

namespace brigade::schedule::detail {

// Where a curve takes over from the warm-up: at the rate `peak`, in step `step` of its schedule.
struct Start {
  double peak = 0;
  std::int64_t step = 0;
};

class Curve {
 public:
  Curve() = default;
  Curve(const Curve&) = delete;
  Curve& operator=(const Curve&) = delete;
  virtual ~Curve() = default;

  // For steps from start.step on.
  virtual double rate(const Start& start, std::int64_t step) const = 0;

  // Throws InvalidArgument when a warm-up over so many steps leaves nothing of the curve.
  virtual void check_warmup(std::int64_t /*steps*/) const {}

  // Follows "then"; `origin` is the step of the run in which the schedule begins.
  virtual std::string describe(const Start& start, std::int64_t origin) const = 0;
};

using CurvePointer = std::shared_ptr<const Curve>;

// Each throws InvalidArgument for arguments that cannot be; the header of Schedule says what they mean.
CurvePointer flat();
CurvePointer staircase(std::int64_t every, const StepOptions& options);
CurvePointer staircase_at(std::vector<std::int64_t> milestones, const StepOptions& options);
CurvePointer exponential(double gamma, const ExponentialOptions& options);
CurvePointer cosine(std::int64_t total_steps, const CosineOptions& options);
CurvePointer linear(std::int64_t total_steps, const LinearOptions& options);
CurvePointer polynomial(std::int64_t total_steps, const PolynomialOptions& options);
CurvePointer inverse_sqrt(const InverseSqrtOptions& options);
CurvePointer one_cycle(std::int64_t total_steps, const OneCycleOptions& options);

// Half a cosine from 0 at `left` = 0 up to 1 at `left` = 1: (1 - cos(π left)) / 2, without its cancellation near 0.
double half_cosine(double left);

// A warm-up over `warmup_steps` steps before `curve`, such as "a cosine", which ends at total_steps.
void check_warmup_ends_before(std::int64_t warmup_steps, std::string_view curve, std::int64_t total_steps);

}  // namespace brigade::schedule::detail
