#include "brigade/comm/compress/distortion.h"

#include "comm/compress/support.h"

namespace brigade::comm {
namespace distortion_test {

using namespace testing;

TEST(DistortionOf, TwoVectorsIsThatOfAPlainLoop) {
  for (const std::size_t count : {0U, 1U, 15U, 16U, 17U, 1000U, 10'007U}) {
    const Numbers sent = numbers(count);
    const Numbers received = numbers(count, 2);
    long double norm = 0, error = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const auto x = static_cast<long double>(sent[i]), y = static_cast<long double>(received[i]);
      norm += x * x;
      error += (x - y) * (x - y);
    }
    const Distortion first = distortion(sent, received);
    on_every_target([&](const char* target) {
      const Distortion own = distortion(sent, received);
      EXPECT_NEAR(own.squared_norm, static_cast<double>(norm), 1e-13 * static_cast<double>(norm)) << target;
      EXPECT_NEAR(own.squared_error, static_cast<double>(error), 1e-13 * static_cast<double>(error)) << target;
      EXPECT_EQ(own.squared_norm, first.squared_norm) << target;
      EXPECT_EQ(own.squared_error, first.squared_error) << target;
    });
  }
}

TEST(DistortionOf, ClosedForms) {
  const Numbers sent = {3, 4};
  EXPECT_EQ(distortion(sent, Numbers{0, 4}).relative(), 0.6);
  EXPECT_EQ(distortion(sent, sent).relative(), 0);
  EXPECT_EQ(distortion(Numbers{0}, Numbers{0}).relative(), 0);
  EXPECT_EQ(distortion(Numbers{0}, Numbers{1}).relative(), HUGE_VAL);
}

// In float32 the squares would overflow, or vanish.
TEST(DistortionOf, HoldsForLargeAndSmallNumbers) {
  for (const float size : {1e38F, 1e-38F})
    EXPECT_FLOAT_EQ(distortion(Numbers{size}, Numbers{size / 2}).relative(), 0.5);
  EXPECT_FALSE(std::isfinite(distortion(Numbers{1, kInfinity}, Numbers{1, 1}).squared_norm));
}

TEST(DistortionOf, NeedsAsManyOfBoth) {
  EXPECT_ERROR(distortion(Numbers{1, 2}, Numbers{1}), ShapeError, "2 numbers were sent and 1 received");
}

}  // namespace distortion_test
}  // namespace brigade::comm
