// A device that does not come back is told to the hang action, with a table of what all are doing. In a program of its own, as
// the deadline is read once.
#include "brigade/runtime/watchdog.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "brigade/base/error.h"
#include "brigade/runtime/axis.h"
#include "support/nine_devices.h"

namespace brigade {
namespace watchdog_test {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

const bool kShortDeadline = (setenv("BRIGADE_DEADLINE", "0.1", 1), true);

// Keeps the tables, and lets a device go on once there are as many as it waits for.
class Tables {
 public:
  Tables() {
    set_hang_action([this](const std::string& table) {
      const std::lock_guard lock(mutex_);
      all_.push_back(table);
      count_ = static_cast<int>(all_.size());
    });
  }
  ~Tables() { set_hang_action({}); }
  Tables(const Tables&) = delete;
  Tables& operator=(const Tables&) = delete;

  void wait_for(int count) const {
    while (count_ < count) std::this_thread::yield();
  }
  std::vector<std::string> all() {
    const std::lock_guard lock(mutex_);
    return all_;
  }

 private:
  std::mutex mutex_;
  std::vector<std::string> all_;
  std::atomic<int> count_{0};
};

std::shared_ptr<Axis> three_devices() {
  return Axis::create("devices", {devices().begin(), devices().begin() + 3}, std::source_location::current());
}

TEST(AHang, IsToldWithATableOfAllDevicesAgainAfterEachDeadline) {
  Tables tables;
  const auto axis = three_devices();
  EXPECT_THROW(axis->run([&](int position) {
    if (position == 1) return tables.wait_for(2);
    axis->group(position).barrier({.tag = "a meeting"});
  }),
               DeadlineExceeded);
  ASSERT_GE(tables.all().size(), 2U);
  for (const std::string& table : tables.all()) {
    EXPECT_THAT(table, AllOf(HasSubstr("the pmap over axis \"devices\""), HasSubstr("hangs"),
                             HasSubstr("device 1 (cpu:1): does not come back"),
                             HasSubstr("device 0 (cpu:0): has left: brigade::DeadlineExceeded"),
                             HasSubstr("device 2 (cpu:2): has left: brigade::")));
  }
}

TEST(AHang, IsNoneWhenADeviceComputesLongAndNobodyWaits) {
  Tables tables;
  const auto axis = three_devices();
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(400);
  axis->run([&](int position) {
    while (position == 2 && std::chrono::steady_clock::now() < end) std::this_thread::yield();
  });
  EXPECT_TRUE(tables.all().empty());
}

TEST(AHang, IsForgottenByTheNextLaunch) {
  Tables tables;
  const auto axis = three_devices();
  EXPECT_THROW(axis->run([&](int position) {
    if (position == 0) tables.wait_for(1);
    throw InvalidArgument("on purpose");
  }),
               InvalidArgument);
  const std::size_t told = tables.all().size();
  for (int launch = 0; launch < 20; ++launch)
    axis->run([&](int position) { axis->group(position).barrier({.tag = "a meeting"}); });
  EXPECT_EQ(tables.all().size(), told);
}

}  // namespace watchdog_test
}  // namespace brigade
