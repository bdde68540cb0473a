#include "optim/schedule_piece.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "optim/schedule_errors.h"

namespace brigade::schedule::detail {
namespace {

double start_of_warmup(const Piece& piece, double first) {
  if (piece.warmup.steps == 0) return first;
  if (piece.warmup.from) return *piece.warmup.from;
  if (piece.peak.scaling == Scaling::kNone) return 0;
  const Start unscaled{.peak = piece.peak.base, .step = piece.warmup.steps};
  return std::min(first, piece.curve->rate(unscaled, unscaled.step));
}

}  // namespace

double Peak::rate(std::int64_t effective_batch) const {
  const double ratio = static_cast<double>(effective_batch) / static_cast<double>(base_batch);
  switch (scaling) {
    case Scaling::kLinear:
      return base * ratio;
    case Scaling::kSqrt:
      return base * std::sqrt(ratio);
    case Scaling::kNone:
      break;
  }
  return base;
}

std::string Peak::describe(std::int64_t effective_batch) const {
  std::string text = fmt::format("{:.6g}", rate(effective_batch));
  switch (scaling) {
    case Scaling::kLinear:
      return fmt::format("{} = {:.6g} × {}/{}", text, base, effective_batch, base_batch);
    case Scaling::kSqrt:
      return fmt::format("{} = {:.6g} × √({}/{})", text, base, effective_batch, base_batch);
    case Scaling::kNone:
      break;
  }
  return text;
}

BoundPiece::BoundPiece(const Piece& piece, std::int64_t effective_batch)
    : origin_(piece.origin),
      start_{.peak = piece.peak.rate(effective_batch), .step = piece.warmup.steps},
      curve_(piece.curve),
      first_(curve_->rate(start_, start_.step)),
      warmup_from_(start_of_warmup(piece, first_)),
      reason_(piece.peak.describe(effective_batch)) {
  check_positive(fmt::format("the rate for steps of {} rows", effective_batch), start_.peak);
}

double BoundPiece::rate(std::int64_t step) const {
  const std::int64_t own = step - origin_;
  if (own >= start_.step) return curve_->rate(start_, own);
  return std::lerp(warmup_from_, first_, static_cast<double>(own) / static_cast<double>(start_.step));
}

std::string BoundPiece::describe() const {
  std::string text = reason_ + ", ";
  if (start_.step > 0) {
    const std::string steps = start_.step == 1 ? "1 step" : fmt::format("{} steps", start_.step);
    if (warmup_from_ == first_) {
      text += fmt::format("held for {} as there is nothing to warm up to, then ", steps);
    } else {
      const std::string to = first_ == start_.peak ? "" : fmt::format(" to {:.6g}", first_);
      text += fmt::format("warm-up over {} from {:.6g}{}, then ", steps, warmup_from_, to);
    }
  }
  return text + curve_->describe(start_, origin_);
}

}  // namespace brigade::schedule::detail
