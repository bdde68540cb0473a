#include "brigade/runtime/blas.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include "brigade/runtime/device.h"

namespace brigade {
namespace {

TEST(Blas, IsNamedAndMeasured) {
  EXPECT_FALSE(blas_info().name.empty());
  EXPECT_GT(measure_blas_gflops(), 0.0);
}

TEST(Blas, IsReferenceOnlyWhereSgemmComesFromTheReferenceLibrary) {
  EXPECT_EQ(blas_info().is_reference, blas_info().name == "reference BLAS");
}

TEST(Blas, RunsSingleThreadedOnceDevicesExist) {
  devices();
  const auto threads = reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, "openblas_get_num_threads"));
  if (threads == nullptr) return;  // another BLAS: nothing to ask it
  EXPECT_EQ(threads(), 1);
}

}  // namespace
}  // namespace brigade
