#include "brigade/random/dropout.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "brigade/base/error.h"
#include "support/errors.h"

namespace brigade::random {
namespace dropout_test {

TEST(DropoutMask, KeepsTheShareThatIsNotDropped) {
  constexpr double kCount = 1'000'000;
  for (const double rate : {0.0, 0.1, 0.5, 0.9}) {
    const at::Tensor mask = dropout_mask(key(1), {1000, 1000}, rate);
    EXPECT_EQ(mask.scalar_type(), at::kBool);
    const double kept = mask.sum().item<double>() / kCount;
    EXPECT_NEAR(kept, 1 - rate, 5 * std::sqrt(rate * (1 - rate) / kCount)) << rate;
  }
}

TEST(Dropout, ScalesWhatItKeeps) {
  const at::Tensor x = at::arange(1, 10'001).to(at::kFloat);
  const at::Tensor expected = at::where(dropout_mask(key(2), {10'000}, 0.25), x / 0.75, at::zeros_like(x));
  EXPECT_TRUE(at::equal(dropout(key(2), x, 0.25), expected));
  EXPECT_TRUE(at::equal(dropout(key(2), x.to(at::kBFloat16), 0.25) != 0, expected != 0));
}

TEST(Dropout, OfRateZeroIsTheInput) {
  const at::Tensor x = at::ones({3});
  EXPECT_TRUE(dropout(key(0), x, 0.0).is_same(x));
}

TEST(Dropout, LetsNoInfinityThroughADroppedElement) {
  const at::Tensor x = at::full({1000}, std::numeric_limits<float>::infinity());
  const at::Tensor mask = dropout_mask(key(3), {1000}, 0.5);
  EXPECT_TRUE(at::equal(dropout(key(3), x, 0.5).isinf(), mask));
}

TEST(Dropout, HasTheGradientOfItsMask) {
  const at::Tensor x = at::ones({1000}).set_requires_grad(true);
  dropout(key(4), x, 0.5).sum().backward();
  EXPECT_TRUE(at::equal(x.grad(), dropout_mask(key(4), {1000}, 0.5).to(at::kFloat) * 2));
}

TEST(Dropout, RefusesRatesAndTypesThatMakeNoSense) {
  for (const double rate : {-0.1, 1.0, std::nan("")}) {
    EXPECT_ERROR(dropout(key(0), at::ones({2}), rate), InvalidArgument, "random::dropout: the rate is ");
    EXPECT_ERROR(dropout_mask(key(0), {2}, rate), InvalidArgument, "give the share of elements to drop, 0 <= rate < 1");
  }
  EXPECT_ERROR(dropout(key(0), at::ones({2}, at::kLong), 0.5), InvalidArgument,
               "x is Long; give a floating-point tensor");
}

}  // namespace dropout_test
}  // namespace brigade::random
