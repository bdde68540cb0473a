#include "brigade/transform/axes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <span>

#include "brigade/base/error.h"

namespace brigade {
namespace axes_test {

using testing::HasSubstr;
using testing::ThrowsMessage;

std::optional<int> at(const Axes& axes, std::span<const tree::Step> steps, const tree::Path& above = {}) {
  if (steps.empty()) return axes.at(above, "in_axes", "i", std::source_location::current());
  const tree::Path path = above.below(steps.front());
  return at(axes, steps.subspan(1), path);
}

const std::vector<tree::Step> kFirstFieldOfSecondArgument = {{.index = 1, .count = 2},
                                                             {.name = "w1", .index = 0, .count = 2}};

TEST(Axes, OneChoiceHoldsForEverythingBelow) {
  EXPECT_EQ(at(0, kFirstFieldOfSecondArgument), 0);
  EXPECT_EQ(at(-2, kFirstFieldOfSecondArgument), -2);
  EXPECT_EQ(at(none, kFirstFieldOfSecondArgument), std::nullopt);
}

TEST(Axes, ChoicesPerChildMayStopAtAnyDepth) {
  EXPECT_EQ(at({0, 1}, kFirstFieldOfSecondArgument), 1);
  EXPECT_EQ(at({0, {none, 3}}, kFirstFieldOfSecondArgument), std::nullopt);
  EXPECT_EQ(at({0, {2, none}}, kFirstFieldOfSecondArgument), 2);
}

TEST(Axes, ThatAreNoPrefixNameThePlace) {
  EXPECT_THAT(
      [] {
        at({0, 0, 0}, kFirstFieldOfSecondArgument);
      },
      ThrowsMessage<TreeError>(HasSubstr("in_axes has 3 entries where the value has 2 children")));
  EXPECT_THAT(
      [] {
        at({0, {0, 0, 0}}, kFirstFieldOfSecondArgument);
      },
      ThrowsMessage<TreeError>(HasSubstr("in_axes[1] has 3 entries where the value has 2 children")));
  EXPECT_THAT(
      [] {
        at({0, {{0, 1}, 0}}, kFirstFieldOfSecondArgument);
      },
      ThrowsMessage<TreeError>(HasSubstr("in_axes[1].w1 has 2 entries where the value is a single tensor")));
}

}  // namespace axes_test
}  // namespace brigade
