#include "brigade/data/normalize.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "brigade/base/error.h"
#include "brigade/data/fashion_mnist.h"
#include "data/expect_error.h"

namespace brigade::data {
namespace {

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

TEST(Normalize, GivesAByteTheSameBitsWhereverItStands) {
  // 37 copies of 256 bytes: each byte falls into vector lanes and into the tail.
  const torch::Tensor bytes = at::arange(256, at::kByte).repeat(37);
  const torch::Tensor rows = normalize(bytes, 0.3, 0.7).reshape({37, 256});
  for (std::int64_t row = 1; row < 37; ++row) EXPECT_TRUE(rows[row].equal(rows[0]));
  EXPECT_TRUE(normalize(bytes.narrow(0, 5, 3), 0.3, 0.7).equal(rows[0].narrow(0, 5, 3)));
}

TEST(Normalize, RefusesOtherDtypesAndASpreadOfZero) {
  expect_error<InvalidArgument>([] { normalize(at::zeros({2}), 0, 1); }, {"uint8", "Float"});
  expect_error<InvalidArgument>([] { normalize({}, 0, 1); }, {"undefined"});
  expect_error<InvalidArgument>([] { normalize(at::zeros({2}, at::kByte), 0, 0); }, {"above 0"});
  expect_error<InvalidArgument>([] { normalize(at::zeros({2}, at::kByte), 0, std::nan("")); }, {"above 0"});
}

}  // namespace
}  // namespace brigade::data
