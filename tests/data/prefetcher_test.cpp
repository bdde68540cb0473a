#include "data/prefetcher.h"

#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <stdexcept>
#include <vector>

namespace brigade::data {
namespace prefetcher_test {

TEST(Prefetcher, GivesAllItemsInOrderAndThenNothing) {
  for (const std::size_t depth : {1u, 2u, 7u}) {
    int made = 0;
    Prefetcher<int> items([&]() -> std::optional<int> { return made < 100 ? std::optional(made++) : std::nullopt; },
                          depth);
    std::vector<int> got;
    while (const auto item = items.next()) got.push_back(*item);
    ASSERT_EQ(got.size(), 100u);
    for (int i = 0; i < 100; ++i) EXPECT_EQ(got[static_cast<std::size_t>(i)], i);
    EXPECT_EQ(items.next(), std::nullopt);
  }
}

TEST(Prefetcher, RunsAheadByItsDepthAndNoFurther) {
  std::atomic<int> made = 0;
  Prefetcher<int> items([&]() -> std::optional<int> { return made.fetch_add(1); }, 3);
  for (int taken = 0; taken < 50; ++taken) {
    EXPECT_EQ(items.next(), taken);
    // Taken, three that wait, and none begun while they do.
    EXPECT_LE(made.load(), taken + 1 + 3);
  }
}

TEST(Prefetcher, MakesItemsBeforeTheyAreAskedFor) {
  std::latch two_made(2);
  int made = 0;
  Prefetcher<int> items(
      [&]() -> std::optional<int> {
        if (made < 2) two_made.count_down();
        return made++;
      },
      2);
  two_made.wait();
  EXPECT_EQ(items.next(), 0);
}

TEST(Prefetcher, HandsTheProducersErrorOverBehindTheItemsBeforeIt) {
  int made = 0;
  Prefetcher<int> items(
      [&]() -> std::optional<int> {
        if (made == 2) throw std::out_of_range("row 7 is unreadable");
        return made++;
      },
      4);
  EXPECT_EQ(items.next(), 0);
  EXPECT_EQ(items.next(), 1);
  for (int again = 0; again < 2; ++again) {
    try {
      items.next();
      ADD_FAILURE() << "nothing was thrown";
    } catch (const std::out_of_range& error) {
      EXPECT_STREQ(error.what(), "row 7 is unreadable");
    }
  }
}

TEST(Prefetcher, IsDestroyedWithItemsLeftAtAnyMoment) {
  for (int taken = 0; taken < 200; ++taken) {
    Prefetcher<int> items([]() -> std::optional<int> { return 1; }, 2);
    for (int i = 0; i < taken % 4; ++i) EXPECT_EQ(items.next(), 1);
  }
}

}  // namespace prefetcher_test
}  // namespace brigade::data
