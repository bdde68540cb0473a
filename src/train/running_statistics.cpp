#include "running_statistics.h"

#include <ATen/ATen.h>

#include <utility>

namespace brigade::training {
namespace {

thread_local RunningStatistics::Recording* current_recording = nullptr;

void move_towards(const at::Tensor& running, const at::Tensor& value, double factor) {
  running.copy_(running.to(at::kDouble) * (1 - factor) + value * factor);
}

}  // namespace

void RunningUpdate::apply() const {
  const at::NoGradGuard no_grad;
  batches.add_(1);
  const double factor = momentum.value_or(1.0 / batches.item<double>());
  move_towards(running_mean, mean, factor);
  move_towards(running_var, unbiased_variance, factor);
}

void RunningStatistics::apply() const {
  for (const auto& of_leaf : updates_.all()) {
    for (const RunningUpdate& update : of_leaf) update.apply();
  }
}

RunningStatistics::Recording::Recording(RunningStatistics& statistics, std::int64_t leaf, const Replica& own,
                                        const Replica& first) noexcept
    : updates_(statistics.updates_[leaf]), own_(own), first_(first), outer_(std::exchange(current_recording, this)) {}

RunningStatistics::Recording::~Recording() { current_recording = outer_; }

// A layer that is no part of the model, such as one that a loss function has captured, keeps its own.
at::Tensor RunningStatistics::Recording::of_first(const at::Tensor& buffer) const {
  for (std::size_t i = 0; i < own_.buffers.size(); ++i) {
    if (own_.buffers[i].tensor.is_same(buffer)) return first_.buffers[i].tensor;
  }
  return buffer;
}

bool RunningStatistics::is_recording() noexcept { return current_recording != nullptr; }

void RunningStatistics::record(RunningUpdate update) {
  const Recording& here = *current_recording;
  for (at::Tensor* buffer : {&update.running_mean, &update.running_var, &update.batches})
    *buffer = here.of_first(*buffer);
  here.updates_.push_back(std::move(update));
}

}  // namespace brigade::training
