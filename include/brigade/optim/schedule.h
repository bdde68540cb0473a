// Learning-rate schedules: the rate as a pure function of the step, so that a run resumes from the step alone.
//
//   auto schedule = schedule::linear_scaling({.base = 0.02, .base_batch = 64}).warmup(100).cosine(2345);
//   schedule::LearningRate rate = schedule.bind(128);  // 128 rows a step; the trainer does this
//   rate(0);          // 0.02
//   rate.describe();  // 0.04 = 0.02 × 128/64, warm-up over 100 steps from 0.02, then cosine to 0 at step 2345
//
// A schedule has a peak (constant, linear_scaling, sqrt_scaling) and, where they are named, a warm-up to it and one
// curve from there; then() lets another schedule take over.
//
// rate(s) is the rate of the update that s updates came before. What names a step by its number (total_steps,
// milestones, the `at` of then) counts from the first step of its schedule, warm-up included; what is a number of steps
// (every, time_scale) counts from the end of warm-up. A curve that ends keeps its last rate for ever.
//
// What PyTorch (torch.optim.lr_scheduler) and optax do otherwise; where one is not mentioned, it has no such schedule:
//
//   cosine        CosineAnnealingLR rises again after T_max. cosine_decay_schedule gives the last rate as a share of
//                 the first. Both reach it at the step that they name, as here.
//   linear        LinearLR gives both ends as factors of a base rate. linear_schedule is the same.
//   polynomial    PolynomialLR always goes to 0. polynomial_schedule is the same.
//   step          StepLR and exponential_decay(staircase=True) are the same.
//   step_at       MultiStepLR takes milestones in any order, and one of them twice. piecewise_constant_schedule has a
//                 factor for each: here, constants joined by then().
//   exponential   ExponentialLR is the same with `every` = 1, exponential_decay without end_value.
//   one_cycle     OneCycleLR has the same rates, total_steps of them: the last is that of step total_steps - 1, and the
//                 peak may lie between two steps. It gives one more, extrapolated, before it throws; it divides by 0
//                 where the rise ends at step 0, which here has the peak; it takes a pct_start of 1.
//                 cosine_onecycle_schedule has its last rate a step later, and its peak at a whole step.
//   inverse_sqrt  A. Vaswani et al. count steps from 1.
//   warmup        LinearLR in a SequentialLR cannot start from 0, and what follows it counts totals and milestones from
//                 the end of warm-up. warmup_cosine_decay_schedule is the same as here.
//   then          SequentialLR and join_schedules are the same.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace brigade::schedule {

namespace detail {
class Curve;
class BoundPiece;
struct Piece;
}  // namespace detail

struct BatchScaling {
  double base = 0;              // the rate that is right for base_batch
  std::int64_t base_batch = 0;  // rows of one step
};

struct WarmupOptions {
  // Rate at step 0. Unset: 0 for a constant peak; for a scaled one the rate that base_batch rows would start with, or
  // no warm-up where that is not below the schedule's own.
  std::optional<double> from = {};
};

struct StepOptions {
  double gamma = 0.1;  // what each drop multiplies the rate by; above 0
};

struct ExponentialOptions {
  std::int64_t every = 1;  // steps in which the rate is multiplied by gamma once
};

struct CosineOptions {
  double to = 0;  // rate at total_steps and after
};

struct LinearOptions {
  double to = 0;  // rate at total_steps and after
};

struct PolynomialOptions {
  double power = 1;  // above 0; 1 is linear
  double to = 0;     // rate at total_steps and after
};

struct InverseSqrtOptions {
  // Steps after the warm-up in which the rate falls to 1/√2 of the peak. Unset: as many as the warm-up has, or 1.
  std::optional<std::int64_t> time_scale = {};
};

enum class Anneal { kCosine, kLinear };

struct OneCycleOptions {
  double pct_start = 0.3;         // share of the steps that rise: 0 or more, below 1; up to 0.5 with three phases
  double div_factor = 25;         // peak / first rate
  double final_div_factor = 1e4;  // first rate / last rate
  Anneal anneal = Anneal::kCosine;
  bool three_phase = false;  // down to the first rate in as many steps as up to the peak, then to the last rate
};

// A schedule for a known number of rows a step. An immutable value; safe to use from several threads.
class LearningRate {
 public:
  // Throws InvalidArgument for a step below 0, and where a rate that grows has become too large for a double.
  double operator()(std::int64_t step) const;

  // What the rate will be, and why, in one line. Steps in it count from step 0 of the run.
  std::string describe() const;

 private:
  friend class Schedule;
  explicit LearningRate(std::vector<detail::BoundPiece> pieces);

  std::shared_ptr<const std::vector<detail::BoundPiece>> pieces_;
};

// A schedule before the number of rows a step is known. An immutable value: each call gives a new one. Warm-up and
// curve may be named in any order, and a later one replaces an earlier one. All calls throw InvalidArgument for what
// cannot be; numbers of steps go up to 2^53.
class Schedule {
 public:
  // A straight line from a low rate to the first one of the curve, over the first `steps` steps; 0 for none. It comes
  // first also when schedules are joined. Throws when steps is negative, leaves nothing of the curve, or is more than a
  // join leaves.
  Schedule warmup(std::int64_t steps, WarmupOptions options = {}) const;

  // The rate times gamma after every `every` steps.
  Schedule step(std::int64_t every, StepOptions options = {}) const;

  // The rate times gamma from each milestone on. They ascend, and lie after the warm-up.
  Schedule step_at(std::vector<std::int64_t> milestones, StepOptions options = {}) const;

  // The rate times gamma^(t / every), t steps after warm-up. A gamma above 1 raises it, as in a search for the largest
  // rate; join another schedule before it is too large.
  Schedule exponential(double gamma, ExponentialOptions options = {}) const;

  // Half a cosine from the end of warm-up to `to` at step `total_steps`. I. Loshchilov, F. Hutter, "SGDR: stochastic
  // gradient descent with warm restarts", ICLR 2017, without restarts.
  Schedule cosine(std::int64_t total_steps, CosineOptions options = {}) const;

  // A straight line from the end of warm-up to `to` at step `total_steps`.
  Schedule linear(std::int64_t total_steps, LinearOptions options = {}) const;

  // to + (peak - to) * left^power, where `left` is the share of the steps after warm-up that are still to come.
  Schedule polynomial(std::int64_t total_steps, PolynomialOptions options = {}) const;

  // From peak / div_factor up to the peak, and down to peak / (div_factor * final_div_factor) at step total_steps - 1,
  // as torch's OneCycleLR. L. N. Smith, N. Topin, "Super-convergence: very fast training of neural networks using large
  // learning rates", 2018, arXiv:1708.07120. A warm-up in front leads to the cycle's first rate.
  Schedule one_cycle(std::int64_t total_steps, OneCycleOptions options = {}) const;

  // The rate times √(time_scale / (time_scale + t)), t steps after warm-up; after a warm-up over w steps, by itself
  // √(w / step). A. Vaswani et al., "Attention is all you need", NeurIPS 2017; its rates with d_model^-0.5 * w^-0.5 as
  // the peak.
  Schedule inverse_sqrt(InverseSqrtOptions options = {}) const;

  // This schedule for steps 0 to at - 1, then `other`, which sees step 0 at step `at`, so that its warm-up, milestones
  // and totals count from there. Joins associate, and the curve of each part is given before it is joined. Throws when
  // `at` lies within the warm-up or before an earlier join.
  Schedule then(std::int64_t at, const Schedule& other) const;

  // For steps of `effective_batch` rows, over all devices and accumulated micro-batches. Throws InvalidArgument below
  // 1, and when the scaled rate is not a finite number above 0.
  LearningRate bind(std::int64_t effective_batch) const;

 private:
  friend Schedule constant(double rate);
  friend Schedule linear_scaling(BatchScaling scaling);
  friend Schedule sqrt_scaling(BatchScaling scaling);
  explicit Schedule(std::vector<detail::Piece> pieces);  // throws InvalidArgument when they do not go together

  Schedule with_curve(std::string_view call, std::shared_ptr<const detail::Curve> curve) const;

  std::shared_ptr<const std::vector<detail::Piece>> pieces_;
};

// `rate` whatever the batch is. Throws InvalidArgument unless it is finite and above 0.
Schedule constant(double rate);

// base * effective_batch / base_batch, for SGD. P. Goyal et al., "Accurate, large minibatch SGD: training ImageNet in 1
// hour", 2017, arXiv:1706.02677. Throws InvalidArgument unless the base is finite and above 0 and base_batch is 1 or
// more.
Schedule linear_scaling(BatchScaling scaling);

// base * √(effective_batch / base_batch), for rules that divide by the size of gradients, such as Adam. S. Malladi et
// al., "On the SDEs and scaling rules for adaptive gradient algorithms", NeurIPS 2022. Throws as linear_scaling.
Schedule sqrt_scaling(BatchScaling scaling);

}  // namespace brigade::schedule
