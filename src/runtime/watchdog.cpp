#include "watchdog.h"

#include <algorithm>
#include <thread>

#include "brigade/base/environment.h"
#include "brigade/base/log.h"

namespace brigade {
namespace {

constexpr int kLooksPerDeadline = 8;

void log_hang(const std::string& table) { log::error(table); }

}  // namespace

Watchdog& Watchdog::instance() {
  // Leaked on purpose, as its thread outlives the destructors of statics.
  static Watchdog* const watchdog = new Watchdog;
  return *watchdog;
}

Watchdog::Watchdog() : pause_(environment().deadline / kLooksPerDeadline), action_(log_hang) {
  std::thread([this] { run(); }).detach();
}

void Watchdog::add(Watched& one) {
  const std::lock_guard lock(mutex_);
  watched_.push_back(&one);
}

void Watchdog::remove(Watched& one) {
  const std::lock_guard lock(mutex_);
  std::erase(watched_, &one);
}

void Watchdog::set_action(HangAction action) {
  const std::lock_guard lock(mutex_);
  action_ = action ? std::move(action) : HangAction(log_hang);
}

void Watchdog::run() {
  while (true) {
    std::this_thread::sleep_for(std::max(pause_, std::chrono::milliseconds(1)));
    std::vector<std::string> tables;
    HangAction action;
    {
      const std::lock_guard lock(mutex_);
      action = action_;
      for (Watched* one : watched_) {
        if (auto table = one->hang(Watched::Clock::now())) tables.push_back(std::move(*table));
      }
    }
    for (const std::string& table : tables) action(table);
  }
}

void set_hang_action(HangAction action) { Watchdog::instance().set_action(std::move(action)); }

}  // namespace brigade
