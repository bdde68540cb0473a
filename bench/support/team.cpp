#include "support/team.h"

#include <optional>

#include "support/pin.h"

namespace brigade::bench {
namespace {

bool have_a_core_each(int threads) { return threads <= static_cast<int>(std::thread::hardware_concurrency()); }

}  // namespace

Team::Team(int size) : group_(size, {.spin = have_a_core_each(size)}), start_(size), end_(size) {
  for (int rank = 1; rank < size; ++rank) threads_.emplace_back([this, rank] { serve(rank); });
}

Team::~Team() {
  work_ = nullptr;
  start_.arrive_and_wait();
}

double Team::run(const Work& work) noexcept {
  work_ = &work;
  start_.arrive_and_wait();
  const double result = carry_out(0);
  end_.arrive_and_wait();
  return result;
}

void Team::serve(int rank) noexcept {
  while (true) {
    start_.arrive_and_wait();
    if (work_ == nullptr) return;
    carry_out(rank);
    end_.arrive_and_wait();
  }
}

double Team::carry_out(int rank) noexcept {
  std::optional<Pinned> pinned;
  if (have_a_core_each(size())) pinned.emplace(rank);
  return (*work_)(group_.member(rank));
}

}  // namespace brigade::bench
