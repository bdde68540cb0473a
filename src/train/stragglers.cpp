#include "stragglers.h"

#include <fmt/format.h>

#include <algorithm>

#include "brigade/base/log.h"

namespace brigade::training {
namespace {

template <class Values>
double median(Values values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

std::optional<SlowDevice> Stragglers::add(std::span<const std::chrono::nanoseconds> taken) {
  if (taken.size() < 2) return std::nullopt;
  last_.resize(taken.size());
  for (std::size_t i = 0; i < taken.size(); ++i) last_[i][steps_ % kSteps] = static_cast<double>(taken[i].count());
  if (++steps_ < kSteps) return std::nullopt;
  std::vector<double> usual;
  for (const auto& of_device : last_) usual.push_back(median(of_device));
  const auto slowest = std::max_element(usual.begin(), usual.end());
  std::vector<double> others(usual.begin(), slowest);
  others.insert(others.end(), slowest + 1, usual.end());
  const double other = median(std::move(others));
  if (!(other > 0) || *slowest < kTimes * other) return std::nullopt;
  return SlowDevice{.device = static_cast<int>(slowest - usual.begin()), .times = *slowest / other};
}

std::optional<SlowDevice> Stragglers::add(const Seats& seats, const std::vector<Device>& devices, std::int64_t step) {
  std::vector<std::chrono::nanoseconds> taken;
  for (const Seat& seat : seats) taken.push_back(seat.times.forward + seat.times.backward);
  const std::optional<SlowDevice> slow = add(taken);
  if (slow && named_.insert(slow->device).second) {
    log::warn(
        fmt::format("step {}: device {} takes {:.1f} times as long as the others, which wait for it. Is its core "
                    "busy with something else, or are its rows harder?",
                    step, to_string(devices[static_cast<std::size_t>(slow->device)]), slow->times));
  }
  return slow;
}

}  // namespace brigade::training
