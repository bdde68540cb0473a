// How noisy gradients are, as a batch size: beyond it a larger batch stops paying.
//
// From the squared norms of the gradients of small batches b and of the whole batch B, which a data-parallel step has both:
//   |G|^2 = (B |g_B|^2 - b |g_b|^2) / (B - b)    S = (|g_b|^2 - |g_B|^2) / (1/b - 1/B)    noise scale = S / |G|^2
// S. McCandlish et al., "An empirical model of large-batch training", 2018, arXiv:1812.06162, appendix A.1. The two estimates
// are smoothed before they are divided, as each alone is unbiased and their quotient is not.
#pragma once

#include <cstdint>
#include <optional>

#include "leaf_ledger.h"
#include "seat.h"

namespace brigade::training {

class NoiseScale {
 public:
  struct Norms {
    double small = 0;  // mean of |g_b|^2
    double small_batch = 0;
    double big = 0;  // |g_B|^2
    double big_batch = 0;
  };

  // Ignored unless small_batch < big_batch.
  void add(const Norms& norms) noexcept;

  // In what the batches are counted in. None before the first measurement, and while |G|^2 cannot be told from zero.
  std::optional<double> value() const noexcept;

  // Calls f(name, number) with everything it remembers, for checkpoints; f may change the numbers.
  template <class F>
  void visit(F f) {
    f("noise_scale.gradient", gradient_);
    f("noise_scale.variance", variance_);
    f("noise_scale.measurements", measurements_);
  }

 private:
  static constexpr double kKept = 0.95;  // of the old average, in each measurement

  double gradient_ = 0;  // sum of |G|^2 with falling weights
  double variance_ = 0;  // of S
  std::int64_t measurements_ = 0;
};

// Of the step that is through, with the leaves as the small batches, so the number of devices does not show. `scale` is what
// the loss was multiplied by, `norm` that of the averaged gradient. None for leaves of different counts, as the formulas are
// for two sizes.
std::optional<NoiseScale::Norms> norms_of_leaves(const Seats& seats, std::int64_t leaves, const LeafLedger& ledger,
                                                 double scale, double norm);

}  // namespace brigade::training
