#include "brigade/optim/clip.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "brigade/base/error.h"
#include "support/errors.h"

namespace brigade::optim {
namespace clip_test {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

TEST(Clip, ByNormScalesWhatIsLongerAndLeavesTheRest) {
  const Clip clip = clip_norm(2);
  EXPECT_TRUE(clip.needs_norm());
  EXPECT_NEAR(clip.factor(8), 2 / (8 + 1e-6), 1e-7);
  EXPECT_EQ(clip.factor(1), 1);
  EXPECT_EQ(clip.factor(0), 1);
  EXPECT_LT(clip.factor(2), 1) << "torch's convention: a norm of exactly max_norm is shortened by a part in a million";
  EXPECT_EQ(clip.value(), kInf);
  EXPECT_EQ(clip.describe(), "to a global norm of 2");
}

TEST(Clip, ByValueNeedsNoNorm) {
  const Clip clip = clip_value(0.3);
  EXPECT_FALSE(clip.needs_norm());
  EXPECT_EQ(clip.factor(8), 1);
  EXPECT_EQ(clip.value(), 0.3);
  EXPECT_EQ(clip.describe(), "to values of 0.3");
}

TEST(Clip, IsOffByDefault) {
  EXPECT_FALSE(Clip().needs_norm());
  EXPECT_EQ(Clip().factor(1e30), 1);
  EXPECT_EQ(Clip().value(), kInf);
  EXPECT_EQ(Clip().describe(), "off");
}

TEST(Clip, HasNoFactorForANormThatIsNotFinite) {
  EXPECT_TRUE(std::isnan(clip_norm(1).factor(kInf)));
  EXPECT_TRUE(std::isnan(clip_norm(1).factor(kNan)));
}

TEST(Clip, RefusesLimitsThatCannotBe) {
  for (const double limit : {0.0, -1.0, kInf, kNan}) {
    EXPECT_ERROR(clip_norm(limit), InvalidArgument, "clip_norm: the limit is ");
    EXPECT_ERROR(clip_value(limit), InvalidArgument, "clip_value: the limit is ");
  }
}

}  // namespace clip_test
}  // namespace brigade::optim
