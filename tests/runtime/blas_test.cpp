#include "brigade/runtime/blas.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "brigade/runtime/device.h"

namespace brigade {
namespace blas_test {

using testing::AllOf;
using testing::HasSubstr;

TEST(Blas, IsNamedAndMeasured) {
  EXPECT_FALSE(blas_info().name.empty());
  EXPECT_GT(measure_blas_gflops(), 0.0);
}

TEST(Blas, IsWarnedAboutWhenItIsTheReferenceOneOrSlow) {
  EXPECT_FALSE(slow_blas_warning({.name = "OpenBLAS 0.3.21"}, 105));
  EXPECT_THAT(slow_blas_warning({.name = "reference BLAS", .is_reference = true}, 0).value_or(""),
              HasSubstr("libopenblas0-pthread"));
  EXPECT_THAT(slow_blas_warning({.name = "some BLAS"}, 3).value_or(""),
              AllOf(HasSubstr("some BLAS"), HasSubstr("3 GFLOP/s")));
}

TEST(Blas, ComputesWithTheBestKernelsThatItHasForAProcessorItDoesNotKnow) {
  EXPECT_EQ(better_blas_kernels("Prescott", {.avx2 = true, .avx512 = true, .avx512_bf16 = true}), "Cooperlake");
  EXPECT_EQ(better_blas_kernels("Prescott", {.avx2 = true, .avx512 = true}), "SkylakeX");
  EXPECT_EQ(better_blas_kernels("Prescott", {.avx2 = true}), "Haswell");
  EXPECT_EQ(better_blas_kernels("Prescott", {.is_amd = true, .avx2 = true, .avx512 = true}), "Zen");
  EXPECT_EQ(better_blas_kernels("Prescott", {}), "");  // an old processor, or an emulated one
  EXPECT_EQ(better_blas_kernels("Haswell", {.avx2 = true, .avx512 = true}), "");
  devices();
  if (__builtin_cpu_supports("avx2")) {
    EXPECT_NE(blas_info().kernels, "Prescott");
  }
}

TEST(Blas, RunsSingleThreadedOnceDevicesExist) {
  devices();
  const auto threads = reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, "openblas_get_num_threads"));
  if (threads == nullptr) return;  // another BLAS: nothing to ask it
  EXPECT_EQ(threads(), 1);
}

}  // namespace blas_test
}  // namespace brigade
