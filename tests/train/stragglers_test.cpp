// A device that is much slower than the rest is named within 20 steps, and no other.
#include "train/stragglers.h"

#include "brigade/lax/collectives.h"
#include "train/support.h"

namespace brigade::training {
namespace stragglers_test {

using namespace testing;
using namespace std::chrono_literals;
using Times = std::vector<std::chrono::nanoseconds>;

TEST(Stragglers, AreNamedWhenTenTimesSlowerWithinTwentySteps) {
  Stragglers watch;
  std::optional<SlowDevice> found;
  int step = 0;
  while (!found && ++step <= 20) found = watch.add(Times{1ms, 11ms, 1ms, 2ms});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->device, 1);
  EXPECT_DOUBLE_EQ(found->times, 11);
}

TEST(Stragglers, AreNotThoseThatAreTwiceAsSlow) {
  Stragglers watch;
  for (int step = 0; step < 40; ++step) EXPECT_FALSE(watch.add(Times{1ms, 2ms, 1ms}));
}

TEST(Stragglers, AreNotThoseThatWereDisturbedNowAndThen) {
  Stragglers watch;
  for (int step = 0; step < 60; ++step) {
    Times times(3, 1ms);
    if (step % 3 == 0) times[static_cast<std::size_t>(step / 3 % 3)] = 100ms;
    EXPECT_FALSE(watch.add(times));
  }
}

TEST(Stragglers, AreNotDevicesOfAStepThatHadNoRowsForTheOthers) {
  Stragglers watch;
  for (int step = 0; step < 40; ++step) EXPECT_FALSE(watch.add(Times{1ms, 0ms, 0ms}));
}

TEST(Stragglers, AreForgottenOnceTheyAreQuickAgain) {
  Stragglers watch;
  for (int step = 0; step < 20; ++step) watch.add(Times{1ms, 20ms});
  for (int step = 0; step < 5; ++step) watch.add(Times{1ms, 1ms});
  EXPECT_FALSE(watch.add(Times{1ms, 1ms}));
}

TEST(Stragglers, OfATrainerAreInTheReport) {
  DataParallel trainer(make_mlp(), {.per_device_batch = 2, .devices = first_devices(3)});
  std::optional<SlowDevice> slow;
  for (int step = 0; step < 20 && !slow; ++step) {
    const StepReport report = trainer.step(make_rows(6), [](const Mlp& model, const Rows& rows) {
      const auto end = std::chrono::steady_clock::now() + 20ms;
      while (lax::axis_index("devices") == 2 && std::chrono::steady_clock::now() < end) continue;
      return mean_loss(model, rows);
    });
    slow = report.slow_device;
  }
  ASSERT_TRUE(slow);
  EXPECT_EQ(slow->device, 2);
  EXPECT_GT(slow->times, 5);
}

}  // namespace stragglers_test
}  // namespace brigade::training
