#include "noise_scale.h"

#include <vector>

#include "brigade/optim/block_sums.h"
#include "leaf_plan.h"

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

std::optional<NoiseScale::Norms> norms_of_leaves(const Seats& seats, std::int64_t leaves, const LeafLedger& ledger,
                                                 double scale, double norm) {
  const std::optional<double> count = ledger.common_count();
  if (!count || *count == 0) return std::nullopt;
  std::vector<double> squares(static_cast<std::size_t>(leaves));
  const LeafPlan plan(leaves, 1, static_cast<int>(seats.size()));  // the same dealing
  for (std::size_t position = 0; position < seats.size(); ++position) {
    const LeafRange own = plan.leaves_of(static_cast<int>(position));
    for (std::int64_t leaf = own.begin; leaf < own.end; ++leaf)
      squares[static_cast<std::size_t>(leaf)] = seats[position].exchange->squared_norm(leaf);
  }
  const double all = *count * scale;
  return NoiseScale::Norms{.small = optim::tree_sum(squares) / static_cast<double>(leaves) / (all * all),
                           .small_batch = *count,
                           .big = norm * norm,
                           .big_batch = ledger.weight()};
}

}  // namespace brigade::training
