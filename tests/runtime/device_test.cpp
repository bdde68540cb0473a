#include "brigade/runtime/device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "brigade/base/environment.h"
#include "brigade/base/error.h"
#include "brigade/runtime/topology.h"

namespace brigade {
namespace device_test {

using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

TEST(Devices, AreOnePerUsableCoreByDefault) {
  const int expected = environment().cpu_devices.value_or(usable_cores());
  EXPECT_EQ(local_device_count(), expected);
  EXPECT_EQ(device_count(), expected);
  for (int i = 0; i < expected; ++i) EXPECT_EQ(devices()[static_cast<std::size_t>(i)], (Device{DeviceKind::kCpu, i}));
}

TEST(Devices, CannotBeChosenAgainAfterFirstUse) {
  const int count = static_cast<int>(local_device_count());
  EXPECT_NO_THROW(set_cpu_devices(count));
  EXPECT_THAT([&] { set_cpu_devices(count + 1); },
              ThrowsMessage<InvalidArgument>(AllOf(HasSubstr("exist already, " + std::to_string(count)),
                                                   HasSubstr("BRIGADE_CPU_DEVICES=" + std::to_string(count + 1)))));
}

TEST(Devices, RefuseACountThatCannotBeHad) {
  EXPECT_THAT([] { set_cpu_devices(0); },
              ThrowsMessage<InvalidArgument>(HasSubstr("0 devices cannot be had: ask for 1 to 1024")));
  EXPECT_THROW(set_cpu_devices(-3), InvalidArgument);
  EXPECT_THROW(set_cpu_devices(1025), InvalidArgument);
}

TEST(Devices, HaveNames) {
  EXPECT_EQ(to_string(Device{DeviceKind::kCpu, 3}), "cpu:3");
  EXPECT_EQ(to_string(Device{DeviceKind::kCuda, 0}), "cuda:0");
}

// What a variable of the environment says as a number; `otherwise` where it is not set. CMakeLists.txt runs these tests with
// variables set, too.
int number_in(const char* variable, int otherwise) {
  const char* text = std::getenv(variable);
  return text == nullptr ? otherwise : std::atoi(text);
}

TEST(Environment, ChoosesTheNumberOfDevices) {
  EXPECT_EQ(local_device_count(), number_in("BRIGADE_CPU_DEVICES", usable_cores()));
}

TEST(Environment, ChoosesTheThreadsInsideOperators) {
  const int shared = std::max(1, usable_cores() / static_cast<int>(local_device_count()));
  EXPECT_EQ(intra_op_threads(), number_in("BRIGADE_INTRA_OP_THREADS", shared));
}

}  // namespace device_test
}  // namespace brigade
