#include "brigade/data/normalize.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <hwy/targets.h>

#include "brigade/base/error.h"
#include "brigade/data/fashion_mnist.h"
#include "support/errors.h"

namespace brigade::data {
namespace normalize_test {

TEST(Normalize, EqualsAPlainLoopForEveryByte) {
  const torch::Tensor bytes = at::arange(256, at::kByte).reshape({2, 8, 16});
  const torch::Tensor result = normalize(bytes, kFashionMnistMean, kFashionMnistStd);
  EXPECT_EQ(result.scalar_type(), at::kFloat);
  EXPECT_EQ(result.sizes(), bytes.sizes());
  const auto* values = result.data_ptr<float>();
  for (int byte = 0; byte < 256; ++byte) {
    EXPECT_NEAR(values[byte], (byte / 255.0 - kFashionMnistMean) / kFashionMnistStd, 5e-7) << byte;
  }
}

class NormalizeInstructionSets : public ::testing::Test {
 protected:
  void TearDown() override { hwy::SetSupportedTargetsForTest(0); }
};

// 37 copies of 256 bytes and a few more: each byte falls into several lanes, some into the tail.
TEST_F(NormalizeInstructionSets, AllGiveAByteTheBitsOfTorchsOperatorsWhereverItStands) {
  const torch::Tensor bytes = at::arange(256, at::kByte).repeat(38).narrow(0, 3, 256 * 37 + 5);
  const torch::Tensor expected = bytes.to(at::kFloat).mul_(1 / (255 * 0.7)).add_(-0.3 / 0.7);
  for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
    hwy::SetSupportedTargetsForTest(target);
    EXPECT_TRUE(normalize(bytes, 0.3, 0.7).equal(expected)) << hwy::TargetName(target);
  }
}

TEST(Normalize, ReadsViewsByTheirValues) {
  const torch::Tensor bytes = at::arange(240, at::kByte).reshape({12, 20});
  EXPECT_TRUE(normalize(bytes.t(), 0.3, 0.7).equal(normalize(bytes, 0.3, 0.7).t()));
  EXPECT_EQ(normalize(at::empty({0, 28, 28}, at::kByte), 0.3, 0.7).sizes(), at::IntArrayRef({0, 28, 28}));
}

TEST(Normalize, RefusesOtherDtypesAndASpreadOfZero) {
  expect_error<InvalidArgument>([] { normalize(at::zeros({2}), 0, 1); }, {"uint8", "Float"});
  expect_error<InvalidArgument>([] { normalize({}, 0, 1); }, {"undefined"});
  expect_error<InvalidArgument>([] { normalize(at::zeros({2}, at::kByte), 0, 0); }, {"above 0"});
  expect_error<InvalidArgument>([] { normalize(at::zeros({2}, at::kByte), 0, std::nan("")); }, {"above 0"});
}

}  // namespace normalize_test
}  // namespace brigade::data
