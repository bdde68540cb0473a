#include "brigade/optim/schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "optim/schedule_errors.h"
#include "optim/schedule_piece.h"

namespace brigade::schedule {
namespace {

using Pieces = std::vector<detail::Piece>;

// What a warm-up, a curve and a join refuse each other, whichever was named first.
void check_together(const Pieces& pieces) {
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const detail::Piece& piece = pieces[i];
    piece.curve->check_warmup(piece.warmup.steps);
    if (i + 1 == pieces.size()) break;
    const std::int64_t steps = pieces[i + 1].origin - piece.origin;
    if (steps < piece.warmup.steps) {
      refuse(
          "a schedule of {} steps is too short for its warm-up over {}. Join the next one later, at step {} or after.",
          steps, piece.warmup.steps, piece.origin + piece.warmup.steps);
    }
  }
}

detail::Peak scaled(detail::Scaling how, const BatchScaling& scaling) {
  check_positive("the base rate", scaling.base);
  if (scaling.base_batch < 1) {
    refuse("base_batch is {}: give the rows of one step that the base rate was found for, 1 or more.",
           scaling.base_batch);
  }
  return {.scaling = how, .base = scaling.base, .base_batch = scaling.base_batch};
}

}  // namespace

LearningRate::LearningRate(std::vector<detail::BoundPiece> pieces)
    : pieces_(std::make_shared<const std::vector<detail::BoundPiece>>(std::move(pieces))) {}

double LearningRate::operator()(std::int64_t step) const {
  if (step < 0) refuse("there is no step {}; steps count from 0.", step);
  const auto next = std::ranges::upper_bound(*pieces_, step, {}, &detail::BoundPiece::origin);
  const double rate = std::prev(next)->rate(step);
  if (!std::isfinite(rate))
    refuse("the rate of step {} is {}: join a schedule that does not grow before it.", step, rate);
  return rate;
}

std::string LearningRate::describe() const {
  std::string text;
  for (const detail::BoundPiece& piece : *pieces_) {
    if (piece.origin() > 0) text += fmt::format("; from step {}: ", piece.origin());
    text += piece.describe();
  }
  return text;
}

Schedule::Schedule(std::vector<detail::Piece> pieces) : pieces_(std::make_shared<const Pieces>(std::move(pieces))) {
  check_together(*pieces_);
}

Schedule Schedule::warmup(std::int64_t steps, WarmupOptions options) const {
  if (steps < 0) refuse("a warm-up over {} steps cannot be: give 0 or more.", steps);
  if (options.from) check_non_negative("the rate that warm-up starts from", *options.from);
  Pieces pieces = *pieces_;
  pieces.front().warmup = {.steps = steps, .from = options.from};
  return Schedule(std::move(pieces));
}

Schedule Schedule::with_curve(std::string_view call, std::shared_ptr<const detail::Curve> curve) const {
  if (pieces_->size() > 1) {
    refuse("{}() after then() could be meant for any of the joined schedules: give each its curve before the join.",
           call);
  }
  Pieces pieces = *pieces_;
  pieces.front().curve = std::move(curve);
  return Schedule(std::move(pieces));
}

Schedule Schedule::step(std::int64_t every, StepOptions options) const {
  return with_curve("step", detail::staircase(every, options));
}

Schedule Schedule::step_at(std::vector<std::int64_t> milestones, StepOptions options) const {
  return with_curve("step_at", detail::staircase_at(std::move(milestones), options));
}

Schedule Schedule::exponential(double gamma, ExponentialOptions options) const {
  return with_curve("exponential", detail::exponential(gamma, options));
}

Schedule Schedule::cosine(std::int64_t total_steps, CosineOptions options) const {
  return with_curve("cosine", detail::cosine(total_steps, options));
}

Schedule Schedule::linear(std::int64_t total_steps, LinearOptions options) const {
  return with_curve("linear", detail::linear(total_steps, options));
}

Schedule Schedule::polynomial(std::int64_t total_steps, PolynomialOptions options) const {
  return with_curve("polynomial", detail::polynomial(total_steps, options));
}

Schedule Schedule::one_cycle(std::int64_t total_steps, OneCycleOptions options) const {
  return with_curve("one_cycle", detail::one_cycle(total_steps, options));
}

Schedule Schedule::inverse_sqrt(InverseSqrtOptions options) const {
  return with_curve("inverse_sqrt", detail::inverse_sqrt(options));
}

Schedule Schedule::then(std::int64_t at, const Schedule& other) const {
  check_steps("the step of a join", at);
  Pieces pieces = *pieces_;
  if (at <= pieces.back().origin) {
    refuse("a join at step {} comes before the one at step {}: join schedules in the order of their steps.", at,
           pieces.back().origin);
  }
  for (detail::Piece piece : *other.pieces_) {
    piece.origin += at;
    check_steps("the step of a join", piece.origin);
    pieces.push_back(std::move(piece));
  }
  return Schedule(std::move(pieces));
}

LearningRate Schedule::bind(std::int64_t effective_batch) const {
  if (effective_batch < 1) refuse("steps of {} rows cannot be: give 1 or more.", effective_batch);
  std::vector<detail::BoundPiece> bound;
  bound.reserve(pieces_->size());
  for (const detail::Piece& piece : *pieces_) bound.emplace_back(piece, effective_batch);
  return LearningRate(std::move(bound));
}

Schedule constant(double rate) {
  check_positive("the rate", rate);
  return Schedule({{.peak = {.base = rate}}});
}

Schedule linear_scaling(BatchScaling scaling) {
  return Schedule({{.peak = scaled(detail::Scaling::kLinear, scaling)}});
}

Schedule sqrt_scaling(BatchScaling scaling) { return Schedule({{.peak = scaled(detail::Scaling::kSqrt, scaling)}}); }

}  // namespace brigade::schedule
