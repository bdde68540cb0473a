#include "guard/difference.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace brigade::guard {
namespace difference_test {

using comm::DType;

template <class T>
std::optional<ElementDifferences> compare(DType dtype, const std::vector<T>& one, const std::vector<T>& other) {
  return differences(dtype, std::as_bytes(std::span(one)), std::as_bytes(std::span(other)));
}

TEST(Difference, OfTheSameBitsIsNone) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_FALSE(compare<float>(DType::kFloat32, {1, nan, -0.0f}, {1, nan, -0.0f}));
  EXPECT_FALSE(compare<float>(DType::kFloat32, {}, {}));
}

TEST(Difference, NamesTheFirstElementItsValuesAndTheLargestDistance) {
  const float next = std::nextafter(1.0f, 2.0f);
  const auto found = compare<float>(DType::kFloat32, {5, 1, 0.1f, 3}, {5, next, 0.1f, std::nextafter(next, 2.0f) + 2});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->count, 2u);
  EXPECT_EQ(found->first, 1u);
  EXPECT_EQ(found->values[0], "1");
  EXPECT_EQ(found->values[1], "1.0000001");
  EXPECT_EQ(found->largest_ulps, 1u);  // 3 + 2 ulps of 1 is 3 + 1 ulp of its own
}

TEST(Difference, CountsUnitsAcrossZeroAndToInfinity) {
  const double tiny = std::numeric_limits<double>::denorm_min();
  EXPECT_EQ(compare<double>(DType::kFloat64, {-tiny}, {tiny})->largest_ulps, 3u);  // over -0 and 0
  EXPECT_EQ(compare<double>(DType::kFloat64, {-0.0}, {0.0})->largest_ulps, 1u);
  EXPECT_EQ(compare<double>(DType::kFloat64, {std::numeric_limits<double>::max()}, {HUGE_VAL})->largest_ulps, 1u);
}

TEST(Difference, OfANanHasNoDistance) {
  const auto found = compare<float>(DType::kFloat32, {1, 2}, {std::numeric_limits<float>::quiet_NaN(), 3});
  EXPECT_EQ(found->values[1], "nan (0x7fc00000)");
  EXPECT_EQ(found->count, 2u);
  EXPECT_FALSE(found->largest_ulps);
}

TEST(Difference, OfIntegersIsTheirDifference) {
  const auto found = compare<std::int64_t>(DType::kInt64, {std::numeric_limits<std::int64_t>::min()}, {2});
  EXPECT_EQ(found->largest_ulps, (std::uint64_t{1} << 63) + 2);
  EXPECT_EQ(found->values[0], "-9223372036854775808");
  EXPECT_EQ(compare<std::int8_t>(DType::kInt8, {-128}, {127})->largest_ulps, 255u);
  EXPECT_EQ(compare<std::uint8_t>(DType::kUint8, {0}, {255})->largest_ulps, 255u);
  EXPECT_EQ(compare<std::int16_t>(DType::kInt16, {-1}, {1})->largest_ulps, 2u);
  EXPECT_EQ(compare<std::int32_t>(DType::kInt32, {7}, {-7})->values[1], "-7");
}

TEST(Difference, KnowsNumbersOfSixteenBits) {
  const auto half =
      compare<std::uint16_t>(DType::kFloat16, {0x3c00, 0x0001, 0xfc00, 0x3555}, {0x3c01, 0x8001, 0x7bff, 0x3555});
  EXPECT_EQ(half->values[0], "1");
  EXPECT_EQ(half->values[1], "1.0009766");
  EXPECT_EQ(half->count, 3u);
  EXPECT_EQ(half->largest_ulps, 0x7c00u + 0x7bffu + 1);  // from -infinity to the largest
  EXPECT_EQ(compare<std::uint16_t>(DType::kFloat16, {0x0001}, {0x7c00})->values[0], "5.9604645e-08");
  EXPECT_EQ(compare<std::uint16_t>(DType::kFloat16, {0x0001}, {0x7c00})->values[1], "inf");
  const auto brain = compare<std::uint16_t>(DType::kBFloat16, {0x3f80}, {0x3f81});
  EXPECT_EQ(brain->values[1], "1.0078125");
  EXPECT_EQ(brain->largest_ulps, 1u);
}

TEST(Difference, OfBoolsIsNamed) {
  const auto found = compare<std::uint8_t>(DType::kBool, {0, 1}, {0, 0});
  EXPECT_EQ(found->first, 1u);
  EXPECT_EQ(found->values[0], "true");
  EXPECT_FALSE(found->largest_ulps);
}

}  // namespace difference_test
}  // namespace brigade::guard
