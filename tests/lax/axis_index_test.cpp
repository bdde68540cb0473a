// axis_index and axis_size.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "brigade/brigade.h"
#include "support/nine_devices.h"

namespace brigade {
namespace axis_index_test {

using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

TEST(AxisSize, IsTheNumberOfDevices) {
  const auto f = pmap([](torch::Tensor) { return lax::axis_size("i"); }, {.axis_name = "i"});
  for (std::int64_t n = 1; n <= 9; ++n) {
    for (const std::int64_t size : f(torch::ones({n}))) EXPECT_EQ(size, n);
  }
}

TEST(AxisIndex, CountsTheDevicesFromZeroAlsoInALoop) {
  const auto out = pmap(
      [](torch::Tensor) {
        std::int64_t sum = 0;
        for (int k = 0; k < 5; ++k) sum += 1 + lax::axis_index("i");
        return std::pair(1 + lax::axis_index("i"), sum);
      },
      {.axis_name = "i"})(torch::ones({9}));
  for (std::int64_t i = 0; i < 9; ++i) EXPECT_EQ(out[i], std::pair(i + 1, 5 * (i + 1)));
}

TEST(AxisIndex, IsInScopeInTheBodyOnly) {
  const auto refused = [](const char* text) {
    return ThrowsMessage<AxisError>(AllOf(HasSubstr(text), HasSubstr("axis_index_test.cpp:")));
  };
  EXPECT_THAT([] { lax::axis_index("i"); }, refused("axis \"i\" is not in scope"));
  EXPECT_THAT([] { lax::axis_size("i"); }, refused("axis \"i\" is not in scope"));
  const auto f = [](auto read) { return [read] { pmap(read, {.axis_name = "i"})(torch::ones({2})); }; };
  EXPECT_THAT(f([](torch::Tensor) { return lax::axis_index("j"); }), refused("in scope is \"i\""));
  EXPECT_THAT(f([](torch::Tensor) { return lax::axis_size("j"); }), refused("in scope is \"i\""));
}

}  // namespace axis_index_test
}  // namespace brigade
