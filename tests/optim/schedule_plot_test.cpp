#include "brigade/optim/schedule_plot.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "brigade/base/error.h"
#include "support/errors.h"

namespace brigade::schedule {
namespace schedule_plot_test {

// Lines of characters, from UTF-8.
std::vector<std::u32string> lines_of(const std::string& text) {
  std::vector<std::u32string> lines(1);
  for (std::size_t i = 0; i < text.size();) {
    const auto lead = static_cast<unsigned char>(text[i++]);
    char32_t c = lead < 0x80 ? lead : lead & 0x0F;
    if (lead >= 0x80) {
      EXPECT_EQ(lead & 0xF0, 0xE0) << "not a character of three bytes";
      for (int more = 0; more < 2; ++more) c = c << 6 | (static_cast<unsigned char>(text.at(i++)) & 0x3F);
    }
    if (c == U'\n') {
      lines.emplace_back();
    } else {
      lines.back() += c;
    }
  }
  EXPECT_TRUE(lines.back().empty()) << "the last line has no end";
  lines.pop_back();
  return lines;
}

// The dots of a picture as [column][level], level 0 at the bottom. `left` columns are labels, 2 lines are below.
std::vector<std::vector<bool>> dots_of(const std::string& picture, std::size_t left, std::size_t width) {
  const std::vector<std::u32string> lines = lines_of(picture);
  const std::size_t rows = lines.size() - 2;
  std::vector dots(2 * (width - left), std::vector<bool>(4 * rows));
  // Unicode counts dots 1, 2, 3, 7 on the left and 4, 5, 6, 8 on the right, and dot n is bit n - 1.
  constexpr int kBits[2][4] = {{0, 1, 2, 6}, {3, 4, 5, 7}};
  for (std::size_t row = 0; row < rows; ++row) {
    for (std::size_t column = left; column < lines[row].size(); ++column) {
      const char32_t c = lines[row][column];
      if (c == U' ') continue;
      EXPECT_TRUE(c > 0x2800 && c <= 0x28FF);
      for (std::size_t x = 0; x < 2; ++x) {
        for (std::size_t y = 0; y < 4; ++y) {
          dots[2 * (column - left) + x][4 * rows - 1 - (4 * row + y)] = (c - 0x2800) >> kBits[x][y] & 1;
        }
      }
    }
  }
  return dots;
}

std::string small(const Schedule& schedule, std::int64_t steps, int height = 4) {
  return plot(schedule.bind(1), steps, {.width = 24, .height = height});
}

TEST(SchedulePlot, DrawsAConstantRateAsALineAtTheTop) {
  EXPECT_EQ(small(constant(0.1), 50),
            " 0.1 ┤⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉\n"
            "   0 ┤\n"
            "     └┬───────┬────────┬\n"
            "step  0       24      49\n");
}

TEST(SchedulePlot, DrawsOneStepAsALine) {
  EXPECT_EQ(small(constant(2.5), 1),
            " 2.5 ┤⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉\n"
            "   0 ┤\n"
            "     └┬─────────────────\n"
            "step  0\n");
}

TEST(SchedulePlot, DrawsARateOfZeroAtTheBottom) {
  EXPECT_EQ(small(constant(0.1).warmup(5), 1),
            "     │\n"
            "   0 ┤⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀\n"
            "     └┬─────────────────\n"
            "step  0\n");
}

// Eight levels of dots, 0.2 on the uppermost: 0.1 lies between levels 3 and 4, and is rounded up.
TEST(SchedulePlot, JoinsADropByAVerticalLine) {
  EXPECT_EQ(small(constant(0.2).step(1, {.gamma = 0.5}), 2),
            " 0.2 ┤⠉⠉⠉⠉⠉⠉⠉⠉⠉⣆⣀⣀⣀⣀⣀⣀⣀⣀\n"
            "   0 ┤\n"
            "     └┬────────┬────────\n"
            "step  0        1\n");
}

// Two steps for each column of dots, and the drop between the two of the tenth.
TEST(SchedulePlot, JoinsStepsWithinAColumn) {
  EXPECT_EQ(small(constant(0.2).step_at({19}, {.gamma = 0.5}), 72),
            " 0.2 ┤⠉⠉⠉⠉⢹⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀\n"
            "   0 ┤\n"
            "     └┬───────┬────────┬\n"
            "step  0       35      71\n");
}

// Three steps of 12 columns of dots each, on levels 0, 4 (a half) and 7. A line begins above the level that it leaves.
TEST(SchedulePlot, JoinsARiseByAVerticalLine) {
  EXPECT_EQ(small(constant(1.0).warmup(2), 3),
            "   1 ┤      ⣀⣀⣀⣀⣀⣀⠏⠉⠉⠉⠉⠉\n"
            "   0 ┤⣀⣀⣀⣀⣀⣀⠇\n"
            "     └┬─────┬─────┬─────\n"
            "step  0     1     2\n");
}

// 36 steps, one for each column of dots; five lines make 20 levels, the rates 0, 1/19, ... 1 and 1 from step 19 on.
TEST(SchedulePlot, DrawsAWarmupDotByDot) {
  EXPECT_EQ(small(constant(1.0).warmup(19), 36, 7),
            "   1 ┤        ⡠⠊⠉⠉⠉⠉⠉⠉⠉⠉\n"
            "     │      ⡠⠊\n"
            " 0.5 ┤    ⡠⠊\n"
            "     │  ⡠⠊\n"
            "   0 ┤⡠⠊\n"
            "     └┬───────┬────────┬\n"
            "step  0       17      35\n");
}

TEST(SchedulePlot, PutsEachRateOnItsLevel) {
  // 112 columns of dots, as many steps; 44 levels.
  const LearningRate rate = constant(0.04).warmup(20, {.from = 0.01}).cosine(100, {.to = 0.002}).bind(1);
  const auto dots = dots_of(plot(rate, 112, {.width = 62, .height = 13}), 6, 62);
  ASSERT_EQ(dots.size(), 112);
  for (std::size_t step = 0; step < dots.size(); ++step) {
    const auto level = static_cast<std::size_t>(std::lround(rate(static_cast<std::int64_t>(step)) / 0.04 * 43));
    EXPECT_TRUE(dots[step][level]) << "step " << step << " at level " << level;
    // The others of the column lead to the level of the step before.
    EXPECT_LE(std::ranges::count(dots[step], true), 3);
  }
}

TEST(SchedulePlot, ShowsEveryStepOfALongRun) {
  const Schedule spike = constant(0.1).then(700'001, constant(0.8)).then(700'002, constant(0.1));
  const std::string picture = plot(spike.bind(1), 1'000'000, {.width = 56, .height = 6});
  EXPECT_EQ(picture.substr(0, 4), " 0.8");
  const auto dots = dots_of(picture, 6, 56);
  for (std::size_t column = 0; column < dots.size(); ++column) {
    // Level 2 of 0 to 15 is 0.1. The spike is in column 70 of 100.
    EXPECT_EQ(std::ranges::count(dots[column], true), column == 70 ? 14 : 1) << column;
    EXPECT_TRUE(dots[column][2]);
  }
}

TEST(SchedulePlot, ShowsTheLongestRun) {
  constexpr std::int64_t kMost = std::int64_t{1} << 53;
  const std::string picture = plot(constant(1.0).linear(kMost).bind(1), kMost, {.width = 24, .height = 4});
  EXPECT_EQ(lines_of(picture)[3], U"step  0 9007199254740991");
  const auto dots = dots_of(picture, 6, 24);
  EXPECT_TRUE(dots.front()[7]);
  EXPECT_TRUE(dots[17][4] && dots[18][3]);  // above a half, below a half
  EXPECT_TRUE(dots.back()[0]);
}

TEST(SchedulePlot, LeavesTheMiddleRateOutWhereNoLineIsInTheMiddle) {
  const auto labels = [](int height) {
    int count = 0;
    for (const auto& line : lines_of(small(constant(0.3), 9, height))) count += line[5] == U'┤' ? 1 : 0;
    return count;
  };
  EXPECT_EQ(labels(6), 2);
  EXPECT_EQ(labels(7), 3);
  EXPECT_EQ(labels(8), 2);
}

TEST(SchedulePlot, KeepsToItsSize) {
  const std::vector<LearningRate> rates = {
      constant(0.1).bind(1), constant(1.2345678e-300).cosine(50).bind(1), constant(123456.789).step(7).bind(1),
      linear_scaling({.base = 0.02, .base_batch = 64}).warmup(100).cosine(2345).bind(128),
      constant(0.4).one_cycle(3000).bind(1)};
  for (const LearningRate& rate : rates) {
    for (const std::int64_t steps : {1, 2, 3, 9, 10, 11, 99, 100, 101, 1000, 12'345}) {
      for (const int width : {24, 25, 31, 80, 1000}) {
        for (const int height : {4, 5, 13}) {
          SCOPED_TRACE(::testing::Message()
                       << rate.describe() << ": " << steps << " steps in " << width << " by " << height);
          const auto lines = lines_of(plot(rate, steps, {.width = width, .height = height}));
          ASSERT_EQ(lines.size(), static_cast<std::size_t>(height));
          std::size_t widest = 0;
          for (const std::u32string& line : lines) {
            ASSERT_FALSE(line.empty());
            EXPECT_NE(line.back(), U' ');
            widest = std::max(widest, line.size());
          }
          EXPECT_EQ(widest, static_cast<std::size_t>(width));  // of the step axis
          const std::u32string& labels = lines.back();
          const std::string last = std::to_string(steps - 1);
          EXPECT_NE(labels.find(std::u32string(last.begin(), last.end())), std::u32string::npos);
        }
      }
    }
  }
}

TEST(SchedulePlot, RefusesWhatCannotBeDrawn) {
  const LearningRate rate = constant(0.1).bind(1);
  EXPECT_ERROR(plot(rate, 0), InvalidArgument, "the number of steps of a plot is 0");
  EXPECT_ERROR(plot(rate, -5), InvalidArgument, "the number of steps of a plot is -5");
  EXPECT_ERROR(plot(rate, (std::int64_t{1} << 53) + 1), InvalidArgument, "steps are counted up to");
  EXPECT_ERROR(plot(rate, 9, {.width = 23}), InvalidArgument, "the width of a plot is 23: give 24 to 1000");
  EXPECT_ERROR(plot(rate, 9, {.width = 1001}), InvalidArgument, "the width of a plot is 1001");
  EXPECT_ERROR(plot(rate, 9, {.height = 3}), InvalidArgument, "the height of a plot is 3: give 4 to 1000");
  EXPECT_ERROR(plot(rate, 9, {.height = std::numeric_limits<int>::max()}), InvalidArgument, "the height of a plot is");
  EXPECT_ERROR(plot(constant(1).exponential(10).bind(1), 999), InvalidArgument, "is inf");
}

}  // namespace schedule_plot_test
}  // namespace brigade::schedule
