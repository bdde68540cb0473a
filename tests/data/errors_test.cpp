#include "data/errors.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace brigade::data {
namespace errors_test {

TEST(Shown, QuotesTextAndLeavesUtf8AsItIs) {
  EXPECT_EQ(shown(""), "\"\"");
  EXPECT_EQ(shown("w1 \xC3\xBC \xE9\x87\x8D \xF0\x9F\x8D\xB3"), "\"w1 \xC3\xBC \xE9\x87\x8D \xF0\x9F\x8D\xB3\"");
}

TEST(Shown, EscapesWhatATerminalObeys) {
  EXPECT_EQ(shown("\x1b[2J\n\x7f"), "\"\\x1b[2J\\x0a\\x7f\"");
  EXPECT_EQ(shown("\xC2\x9b"), "\"\\xc2\\x9b\"");  // CSI, U+009B
  EXPECT_EQ(shown("\xC2\xa0"), "\"\xC2\xa0\"");
}

TEST(Shown, EscapesWhatIsNoUtf8) {
  EXPECT_EQ(shown("a\xff"), "\"a\\xff\"");
  EXPECT_EQ(shown("\x80"), "\"\\x80\"");                             // a continuation alone
  EXPECT_EQ(shown("\xC3"), "\"\\xc3\"");                             // cut short
  EXPECT_EQ(shown("\xC3y"), "\"\\xc3y\"");                           // not continued
  EXPECT_EQ(shown("\xC1\xbf"), "\"\\xc1\\xbf\"");                    // too long for what it is
  EXPECT_EQ(shown("\xE0\x9f\xbf"), "\"\\xe0\\x9f\\xbf\"");           // likewise
  EXPECT_EQ(shown("\xED\xa0\x80"), "\"\\xed\\xa0\\x80\"");           // a surrogate
  EXPECT_EQ(shown("\xF0\x8f\xbf\xbf"), "\"\\xf0\\x8f\\xbf\\xbf\"");  // too long
  EXPECT_EQ(shown("\xF4\x90\x80\x80"), "\"\\xf4\\x90\\x80\\x80\"");  // above U+10FFFF
  EXPECT_EQ(shown("\xF4\x8f\xbf\xbf"), "\"\xF4\x8f\xbf\xbf\"");
}

TEST(Shown, CutsLongTextBetweenCharacters) {
  EXPECT_EQ(shown(std::string(80, 'x')), "\"" + std::string(80, 'x') + "\"");
  EXPECT_EQ(shown(std::string(81, 'x')), "\"" + std::string(80, 'x') + "\"...");
  std::string umlaut_at_79(79, 'x');
  umlaut_at_79 += "\xC3\xBC";
  EXPECT_EQ(shown(umlaut_at_79 + "yz"), fmt::format("\"{}\"...", umlaut_at_79));
}

}  // namespace errors_test
}  // namespace brigade::data
