#include "brigade/runtime/device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "brigade/base/environment.h"
#include "brigade/base/error.h"
#include "brigade/runtime/topology.h"

namespace brigade {
namespace {

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

// These run with BRIGADE_CPU_DEVICES=5 and BRIGADE_INTRA_OP_THREADS=3, in a process of their own (see CMakeLists.txt).
TEST(Environment, DISABLED_BrigadeCpuDevicesIsTheNumberOfDevices) { EXPECT_EQ(local_device_count(), 5); }
TEST(Environment, DISABLED_BrigadeIntraOpThreadsIsTheNumberInsideOperators) { EXPECT_EQ(intra_op_threads(), 3); }
TEST(Environment, DISABLED_SetCpuDevicesOverridesIt) {
  set_cpu_devices(3);
  EXPECT_EQ(local_device_count(), 3);
}

}  // namespace
}  // namespace brigade
