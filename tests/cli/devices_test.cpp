#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/process.h"

namespace brigade {
namespace devices_test {

using testing::AllOf;
using testing::HasSubstr;

TEST(DevicesCommand, ShowsCoresMemoryBlasDevicesAndVersions) {
  const Finished ran = run_process({BRIGADE_PROGRAM, "devices"}, {"BRIGADE_CPU_DEVICES=3"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_THAT(ran.out, AllOf(HasSubstr("cores"), HasSubstr("GiB"), HasSubstr("GFLOP/s"),
                             HasSubstr("3 devices (cpu:0 to cpu:2)"), HasSubstr("CUDA"), HasSubstr("libtorch ")));
}

TEST(DevicesCommand, NamesOneDeviceInTheSingular) {
  const Finished ran =
      run_process({BRIGADE_PROGRAM, "devices"}, {"BRIGADE_CPU_DEVICES=1", "BRIGADE_INTRA_OP_THREADS=2"});
  EXPECT_THAT(ran.out, HasSubstr("1 device (cpu:0), 2 threads inside operators\n"));
}

TEST(DevicesCommand, RefusesAnEnvironmentThatCannotBeUsed) {
  const Finished ran = run_process({BRIGADE_PROGRAM, "devices"}, {"BRIGADE_CPU_DEVICES=many"});
  EXPECT_EQ(ran.code, 2);
  EXPECT_THAT(ran.err,
              HasSubstr("BRIGADE_CPU_DEVICES=\"many\" cannot be used: it takes a whole number from 1 to 1024"));
}

}  // namespace devices_test
}  // namespace brigade
