// Why a step has stopped: where the first number lies that is NaN or infinite.
#pragma once

#include <cstdint>
#include <source_location>

#include "gradient_measure.h"
#include "leaf_ledger.h"
#include "seat.h"

namespace brigade::training {

struct StepPlace {
  std::int64_t step = 0;
  bool in_parts = false;  // that are summed already
  std::source_location site = {};
};

// Throws NonFiniteError, naming leaf, tensor, element and device as far as they are known. For a step that is through, whose
// partial sums are still there.
[[noreturn]] void throw_non_finite(const Seats& seats, const LeafLedger& ledger, const GradientMeasure& measure,
                                   const Layout& layout, const StepPlace& place);

}  // namespace brigade::training
