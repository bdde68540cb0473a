#include "brigade/base/error.h"

#include <gtest/gtest.h>

namespace brigade {
namespace error_test {

TEST(Error, EndsWithEveryPartOfItsContext) {
  const auto site = std::source_location::current();
  const ShapeError error("sizes disagree", {.argument = "[0].w1", .axis = "devices", .device = 3, .site = site});
  EXPECT_EQ(std::string(error.what()),
            "sizes disagree (argument [0].w1, axis \"devices\", device 3, at error_test.cpp:" +
                std::to_string(site.line()) + ")");
  EXPECT_EQ(error.message(), "sizes disagree");
  EXPECT_EQ(error.context().device, 3);
}

TEST(Error, SaysNothingOfAContextThatIsNotKnown) { EXPECT_STREQ(InvalidArgument("no").what(), "no"); }

TEST(Error, TypesAreCaughtAsErrorAndAsRuntimeError) {
  EXPECT_THROW(throw Aborted("x"), Error);
  EXPECT_THROW(throw DataError("x"), std::runtime_error);
}

TEST(QuotedList, ReadsLikeASentence) {
  EXPECT_EQ(quoted_list({}), "");
  EXPECT_EQ(quoted_list({"a"}), "\"a\"");
  EXPECT_EQ(quoted_list({"a", "b", "c"}), "\"a\", \"b\" and \"c\"");
}

TEST(NearestName, FindsASlipOfTheFingerAndNothingElse) {
  const std::vector<std::string> models = {"mlp", "cnn"};
  EXPECT_EQ(nearest_name("mpl", models), "mlp");
  EXPECT_EQ(nearest_name("cn", models), "cnn");
  EXPECT_EQ(nearest_name("transformer", models), "");
}

}  // namespace error_test
}  // namespace brigade
