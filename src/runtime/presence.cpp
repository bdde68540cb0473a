#include "presence.h"

#include <fmt/format.h>

#include "brigade/base/environment.h"

namespace brigade {

Presence::Presence(std::string what, std::vector<Device> devices)
    : what_(std::move(what)), devices_(std::move(devices)), has_left_(devices_.size()), failures_(devices_.size()) {
  Watchdog::instance().add(*this);
}

Presence::~Presence() { Watchdog::instance().remove(*this); }

void Presence::begin() noexcept {
  for (std::atomic<bool>& left : has_left_) left.store(false, std::memory_order_relaxed);
  if (has_failures_.exchange(false)) {
    const std::lock_guard lock(mutex_);
    failed_.reset();
    told_.reset();
    for (std::string& failure : failures_) failure.clear();
  }
  runs_.store(true, std::memory_order_relaxed);
}

void Presence::fail(int position, const std::string& text) noexcept {
  try {
    const std::lock_guard lock(mutex_);
    if (!failed_) failed_ = Clock::now();
    failures_[static_cast<std::size_t>(position)] = text;
  } catch (const std::exception&) {
    // Out of memory: the table says less.
  }
  has_failures_.store(true);
}

std::optional<std::string> Presence::hang(Clock::time_point now) {
  if (!runs_.load(std::memory_order_relaxed) || !has_failures_.load()) return std::nullopt;
  const std::chrono::milliseconds patience = environment().deadline;
  const std::lock_guard lock(mutex_);
  if (!failed_ || now - told_.value_or(*failed_) < patience) return std::nullopt;
  const auto seconds = std::chrono::duration<double>(now - *failed_).count();
  std::string table;
  bool hangs = false;
  for (std::size_t i = 0; i < devices_.size(); ++i) {
    const bool left = has_left_[i].load(std::memory_order_relaxed);
    hangs = hangs || !left;
    table += fmt::format("\n  device {} ({}): {}", i, to_string(devices_[i]),
                         !left                  ? "does not come back from the program's own code, or an operator"
                         : failures_[i].empty() ? "has returned"
                                                : "has left: " + failures_[i]);
  }
  if (!hangs) return std::nullopt;
  told_ = now;
  return fmt::format(
      "{} hangs: the first of its devices gave up {:.1f} s ago, and not all have left:{}\nA thread cannot be "
      "stopped from outside. End the process; what was saved is whole",
      what_, seconds, table);
}

}  // namespace brigade
