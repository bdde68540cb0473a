#include "brigade/runtime/axis.h"

#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>

#include <atomic>
#include <cstdlib>
#include <set>
#include <thread>

#include "brigade/base/environment.h"
#include "brigade/base/error.h"
#include "brigade/runtime/topology.h"

namespace brigade {
namespace axis_test {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

std::shared_ptr<Axis> all_devices() { return Axis::create("i", devices()); }

TEST(Axis, RunsTheBodyOnceOnEveryDeviceEachOnAThreadOfItsOwn) {
  const auto axis = all_devices();
  std::vector<std::thread::id> threads(static_cast<std::size_t>(axis->size()));
  axis->run([&](int position) { threads[static_cast<std::size_t>(position)] = std::this_thread::get_id(); });
  EXPECT_EQ(std::set(threads.begin(), threads.end()).size(), threads.size());
  EXPECT_EQ(threads[0], std::this_thread::get_id());
  const auto before = threads;
  axis->run([&](int position) { threads[static_cast<std::size_t>(position)] = std::this_thread::get_id(); });
  EXPECT_EQ(threads, before);
}

TEST(Axis, TellsABodyWhereItIs) {
  const auto axis = all_devices();
  std::atomic<int> right{0};
  axis->run([&](int position) {
    const AxisPlace place = find_axis("i", std::source_location::current());
    if (place.position == position && place.axis == axis && inside_body()) ++right;
  });
  EXPECT_EQ(right, axis->size());
  EXPECT_FALSE(inside_body());
}

TEST(Axis, GivesEveryDeviceTheGradModeOfTheCaller) {
  const auto axis = all_devices();
  std::atomic<int> enabled{0};
  {
    const at::NoGradGuard off;
    axis->run([&](int) { enabled += at::GradMode::is_enabled(); });
  }
  EXPECT_EQ(enabled, 0);
  axis->run([&](int) { enabled += at::GradMode::is_enabled(); });
  EXPECT_EQ(enabled, axis->size());
}

TEST(Axis, LimitsThreadsInsideOperatorsOnlyWhileABodyRuns) {
  const auto axis = all_devices();
  const int before = at::get_num_threads();
  std::atomic<int> right{0};
  axis->run([&](int) { right += at::get_num_threads() == intra_op_threads(); });
  EXPECT_EQ(right, axis->size());
  EXPECT_EQ(at::get_num_threads(), before);
}

TEST(Axis, OfAnUnknownNameListsTheOneInScope) {
  const auto axis = all_devices();
  EXPECT_THAT([&] { axis->run([](int) { find_axis("j", std::source_location::current()); }); },
              ThrowsMessage<AxisError>(
                  AllOf(HasSubstr("axis \"j\" is not in scope here: in scope is \"i\""), HasSubstr("axis_test.cpp:"))));
  EXPECT_THAT([] { find_axis("j", std::source_location::current()); },
              ThrowsMessage<AxisError>(HasSubstr("called inside the body of a pmap, and this thread runs none")));
}

TEST(Axis, OfAMeshGivesThePlaceOnEachOfItsAxesAndKeepsIt) {
  const int size = device_count();
  const auto axis = Axis::create(Mesh{{"all", size}, {"one", 1}}, devices());
  std::atomic<int> right{0};
  axis->run([&](int position) {
    const auto place = [](const AxisNames& names) { return find_axis(names, std::source_location::current()); };
    EXPECT_EQ(place("all").rank(), position);
    EXPECT_EQ(place("all").size(), size);
    EXPECT_EQ(place("one").size(), 1);
    EXPECT_EQ(place("one").position, position);
    EXPECT_EQ(place({"one", "all"}).name, "one, all");
    EXPECT_EQ(place({"one", "all"}).members, &axis->group(position));
    EXPECT_EQ(place("one").members, place("one").members);
    const AxisPlace alone = place("all").among({{position}});
    EXPECT_EQ(alone.size(), 1);
    EXPECT_EQ(alone.members, place("all").among({{position}}).members);
    ++right;
  });
  EXPECT_EQ(right, size);
}

TEST(Axis, RefusesToRunInsideABody) {
  const auto axis = all_devices();
  EXPECT_THAT(
      [&] { axis->run([&](int) { axis->run([](int) {}); }); },
      ThrowsMessage<AxisError>(AllOf(HasSubstr("they do not nest"), HasSubstr("two named axes"), HasSubstr(".mesh"))));
}

TEST(Axis, RefusesNoDevicesUnknownDevicesAndDevicesNamedTwice) {
  EXPECT_THAT([] { Axis::create("i", {}); }, ThrowsMessage<InvalidArgument>(HasSubstr("`devices` is empty")));
  EXPECT_THAT(
      [] {
        Axis::create("i", {{DeviceKind::kCpu, 0}, {DeviceKind::kCpu, 0}});
      },
      ThrowsMessage<InvalidArgument>(HasSubstr("cpu:0 stands twice")));
  EXPECT_THAT(
      [] {
        Axis::create("i", {{DeviceKind::kCpu, 5000}});
      },
      ThrowsMessage<InvalidArgument>(AllOf(HasSubstr("cpu:5000 is not among"), HasSubstr("BRIGADE_CPU_DEVICES"))));
}

TEST(Axis, RethrowsTheFirstFailureAndReportsTheRest) {
  const auto axis = all_devices();
  const auto throw_everywhere = [&] {
    axis->run([](int position) { throw std::out_of_range("position " + std::to_string(position)); });
  };
  EXPECT_THROW(throw_everywhere(), std::out_of_range);
  const auto report = last_failure();
  ASSERT_TRUE(report);
  EXPECT_EQ(report->axis, "i");
  EXPECT_EQ(report->failures.size(), static_cast<std::size_t>(axis->size()));
  EXPECT_EQ(report->failures[0].type, "std::out_of_range");
  EXPECT_THAT(report->released, ElementsAre());
}

TEST(Axis, LaunchesFromSeveralThreadsTakeTurns) {
  const auto first = all_devices();
  std::vector<Device> reversed(devices().rbegin(), devices().rend());
  const auto second = Axis::create("i", reversed);
  std::atomic<int> running{0};
  std::atomic<bool> overlapped{false};
  const auto body = [&](int) {
    // A collective holds all devices of one launch together, so a second launch among them would be counted here.
    const AxisPlace place = find_axis("i", std::source_location::current());
    const int size = place.axis->size();
    if (++running > size) overlapped = true;
    place.group().barrier({.tag = "barrier"});
    --running;
    place.group().barrier({.tag = "barrier"});
  };
  std::vector<std::thread> users;
  for (int user = 0; user < 4; ++user) {
    users.emplace_back([&, user] {
      for (int i = 0; i < 100; ++i) (user % 2 == 0 ? first : second)->run(body);
    });
  }
  for (auto& user : users) user.join();
  EXPECT_FALSE(overlapped);
}

TEST(Axis, CountsWhereTheTimeGoes) {
  const auto axis = all_devices();
  std::vector<std::byte> buffer(1 << 16);
  axis->run([&](int) {
    std::vector<std::byte> out(buffer.size());
    const comm::Piece piece{.dtype = comm::DType::kFloat32, .in = buffer, .out = out};
    find_axis("i", std::source_location::current()).group().all_reduce({}, {&piece, 1}, {.tag = "sum"});
  });
  for (const DeviceStatistics& s : axis->statistics()) {
    EXPECT_GT(s.busy.count(), 0);
    EXPECT_EQ(s.bytes, 1 << 16);
    EXPECT_GE(s.computing().count(), 0);
  }
  axis->reset_statistics();
  EXPECT_EQ(axis->statistics()[0].busy.count(), 0);
}

// How many devices run on exactly one processor.
int pinned_devices() {
  const auto axis = all_devices();
  std::atomic<int> pinned{0};
  axis->run([&](int) {
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) == 1) ++pinned;
  });
  return pinned;
}

// CMakeLists.txt runs this with BRIGADE_PIN_THREADS=1, too.
TEST(Environment, ChoosesWhetherDevicesArePinnedAndGivesTheCallerBack) {
  const auto before = allowed_processors();
  const bool pin = std::getenv("BRIGADE_PIN_THREADS") != nullptr || before.size() == 1;
  EXPECT_EQ(pinned_devices(), pin ? device_count() : 0);
  EXPECT_EQ(allowed_processors(), before);
}

}  // namespace axis_test
}  // namespace brigade
