// Learning-rate schedules: the rate as a pure function of the step, so that a run resumes from the step alone.
//
//   auto schedule = schedule::linear_scaling({.base = 0.02, .base_batch = 64}).warmup(100).cosine(2345);
//   schedule::LearningRate rate = schedule.bind(128);  // 128 rows a step; the trainer does this
//   rate(0);          // 0.02
//   rate.describe();  // 0.04 = 0.02 × 128/64, warm-up over 100 steps from 0.02, then cosine to 0 at step 2345
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace brigade::schedule {

struct LinearScaling {
  double base = 0;              // the rate that is right for base_batch
  std::int64_t base_batch = 0;  // rows of one step
};

struct WarmupOptions {
  // Rate at step 0. Unset: the base rate before it is scaled up, or 0 for a constant one.
  std::optional<double> from = {};
};

struct CosineOptions {
  double to = 0;  // rate at total_steps and after
};

namespace detail {

struct Warmup {
  std::int64_t steps = 0;
  std::optional<double> from = {};
};

struct Cosine {
  std::int64_t total_steps = 0;
  double to = 0;
};

struct Parts {
  double base = 0;
  std::optional<std::int64_t> base_batch = {};  // of linear scaling
  Warmup warmup = {};                           // of 0 steps when there is none
  std::optional<Cosine> cosine = {};
};

}  // namespace detail

// A schedule for a known number of rows a step.
class LearningRate {
 public:
  // Throws InvalidArgument for a step below 0. Defined for every other, also past the end of the decay.
  double operator()(std::int64_t step) const;

  // What the rate will be, and why, in one line.
  std::string describe() const;

 private:
  friend class Schedule;
  LearningRate(const detail::Parts& parts, std::int64_t effective_batch);

  detail::Parts parts_;
  std::int64_t effective_batch_;
  double peak_;         // after warm-up
  double warmup_from_;  // equals peak_ when there is nothing to warm up to
};

// A schedule before the number of rows a step is known. Each call gives a new value; the order of calls does not
// matter, and a later one replaces an earlier one of its kind.
class Schedule {
 public:
  // A straight line from a low rate to the schedule's own over the first `steps` steps; 0 for none. Throws
  // InvalidArgument when steps is negative, or leaves nothing of the cosine.
  Schedule warmup(std::int64_t steps, WarmupOptions options = {}) const;

  // Half a cosine from the end of warm-up down to `to` at step `total_steps`, where it stays. I. Loshchilov, F. Hutter,
  // "SGDR: stochastic gradient descent with warm restarts", ICLR 2017, without restarts. Throws InvalidArgument when
  // total_steps is below 1, or warm-up takes as long.
  Schedule cosine(std::int64_t total_steps, CosineOptions options = {}) const;

  // For steps of `effective_batch` rows, over all devices and accumulated micro-batches. Throws InvalidArgument
  // below 1.
  LearningRate bind(std::int64_t effective_batch) const;

 private:
  friend Schedule constant(double rate);
  friend Schedule linear_scaling(LinearScaling scaling);
  explicit Schedule(detail::Parts parts);  // throws InvalidArgument when the parts do not go together

  detail::Parts parts_;
};

// `rate` whatever the batch is. Throws InvalidArgument unless it is finite and above 0.
Schedule constant(double rate);

// base * effective_batch / base_batch. Warm-up starts from the base, not from 0, and holds the rate when the batch is
// not above base_batch. P. Goyal et al., "Accurate, large minibatch SGD: training ImageNet in 1 hour", 2017,
// arXiv:1706.02677. Throws InvalidArgument unless the base is finite and above 0 and base_batch is 1 or more.
Schedule linear_scaling(LinearScaling scaling);

}  // namespace brigade::schedule
