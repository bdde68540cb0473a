#include "brigade/comm/dtype.h"

#include <gtest/gtest.h>

namespace brigade::comm {
namespace dtype_test {

TEST(DType, HasTheSizeAndNameThatFrameworksGiveIt) {
  EXPECT_EQ(size_of(DType::kBool), 1u);
  EXPECT_EQ(size_of(DType::kInt16), 2u);
  EXPECT_EQ(size_of(DType::kBFloat16), 2u);
  EXPECT_EQ(size_of(DType::kFloat32), 4u);
  EXPECT_EQ(size_of(DType::kInt64), 8u);
  EXPECT_EQ(size_of(DType::kComplex64), 8u);
  EXPECT_EQ(size_of(DType::kComplex128), 16u);
  EXPECT_EQ(name_of(DType::kUint8), "uint8");
  EXPECT_EQ(name_of(DType::kFloat16), "float16");
  EXPECT_EQ(name_of(DType::kFloat64), "float64");
}

}  // namespace dtype_test
}  // namespace brigade::comm
