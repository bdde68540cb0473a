// What a schedule is put together from: a peak, a warm-up to it and a curve from there.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "optim/curves.h"

namespace brigade::schedule::detail {

enum class Scaling { kNone, kLinear, kSqrt };

// How the rate after warm-up follows from the rows of a step.
struct Peak {
  Scaling scaling = Scaling::kNone;
  double base = 0;
  std::int64_t base_batch = 1;

  double rate(std::int64_t effective_batch) const;

  // "0.04 = 0.02 × 128/64"
  std::string describe(std::int64_t effective_batch) const;
};

struct Warmup {
  std::int64_t steps = 0;  // 0 when there is none
  std::optional<double> from = {};
};

// A schedule that no other was joined to, for the steps from `origin` on. Its own steps count from there.
struct Piece {
  std::int64_t origin = 0;
  Peak peak = {};
  Warmup warmup = {};
  CurvePointer curve = flat();
};

// A piece for a known number of rows a step.
class BoundPiece {
 public:
  // Throws InvalidArgument when the peak is not a finite number above 0.
  BoundPiece(const Piece& piece, std::int64_t effective_batch);

  std::int64_t origin() const { return origin_; }

  // For steps of the run, from `origin` on.
  double rate(std::int64_t step) const;

  std::string describe() const;

 private:
  std::int64_t origin_;
  Start start_;  // of the curve; its step is the number of steps of warm-up
  CurvePointer curve_;
  double first_;        // the curve's rate where it starts, which warm-up leads to
  double warmup_from_;  // equals first_ when there is nothing to warm up to
  std::string reason_;  // for the peak
};

}  // namespace brigade::schedule::detail
