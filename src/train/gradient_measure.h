// What must be known of the whole gradient before any parameter changes: its norm, and whether it is finite.
//
// Every device sums its share of the blocks; after a meeting each combines all of them, in the same order, and comes to the
// same decision.
#pragma once

#include <cmath>
#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "brigade/optim/clip.h"
#include "brigade/optim/step.h"
#include "layout.h"

namespace brigade::training {

class GradientMeasure {
 public:
  GradientMeasure(const Layout& layout, const Flat& gradients);

  // Sums the blocks of `range` of gradients / divisor.
  void sum(BlockRange range, double divisor);

  // Of all blocks, once every device has summed its own.
  double norm() const;
  bool is_finite() const { return std::isfinite(norm()); }

  // Where the first number that is not finite lies: segment and element. Nothing when all are, and only the norm is not.
  struct Place {
    std::size_t segment = 0;
    std::size_t element = 0;
  };
  std::optional<Place> first_non_finite() const;

 private:
  const Layout& layout_;
  const Flat& gradients_;
  std::vector<double> sums_;
};

// Calls f(span of T) with T the dtype of `segment`, for elements [part.begin, part.end) of a flat buffer.
template <class F>
decltype(auto) with_elements(const Layout& layout, const Flat& flat, const Part& part, F f) {
  const Segment& segment = layout.segments()[part.segment];
  const auto span = [&]<class T>(T*) {
    return std::span<T>(reinterpret_cast<T*>(flat.at(part.segment)) + part.begin, part.end - part.begin);
  };
  return segment.dtype == at::kDouble ? f(span(static_cast<double*>(nullptr))) : f(span(static_cast<float*>(nullptr)));
}

inline Part whole(const Layout& layout, std::size_t segment) {
  return {.segment = segment,
          .begin = 0,
          .end = layout.segments()[segment].elements,
          .first_block = layout.segments()[segment].first_block};
}

}  // namespace brigade::training
