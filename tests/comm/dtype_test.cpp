#include "brigade/comm/dtype.h"

#include <gtest/gtest.h>

namespace brigade::comm {
namespace {

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

TEST(DType, SaysWhichTypesReductionsTake) {
  for (const DType dtype : {DType::kInt32, DType::kInt64, DType::kFloat32, DType::kFloat64}) {
    EXPECT_TRUE(is_reducible(dtype)) << name_of(dtype);
  }
  for (const DType dtype : {DType::kBool, DType::kUint8, DType::kInt8, DType::kInt16, DType::kFloat16, DType::kBFloat16,
                            DType::kComplex64, DType::kComplex128}) {
    EXPECT_FALSE(is_reducible(dtype)) << name_of(dtype);
  }
}

}  // namespace
}  // namespace brigade::comm
