#include "noise_scale.h"

namespace brigade::training {

void NoiseScale::add(const Norms& norms) noexcept {
  const auto [small, b, big, B] = norms;
  if (!(b < B)) return;
  // Both averages begin at zero alike, so their quotient needs no correction for it.
  gradient_ = kKept * gradient_ + (1 - kKept) * (B * big - b * small) / (B - b);
  variance_ = kKept * variance_ + (1 - kKept) * (small - big) / (1 / b - 1 / B);
  ++measurements_;
}

std::optional<double> NoiseScale::value() const noexcept {
  if (measurements_ == 0 || !(gradient_ > 0)) return std::nullopt;
  return variance_ / gradient_;
}

}  // namespace brigade::training
