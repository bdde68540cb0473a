// Against a full sort.
#include <algorithm>
#include <numeric>

#include "comm/compress/support.h"

namespace brigade::comm {
namespace topk_test {

using namespace testing;

// NaN above everything; of equal ones the first.
Numbers largest_by_sorting(const Numbers& in, std::size_t count) {
  std::vector<std::size_t> order(in.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto size = [&](std::size_t i) {
    return std::isnan(in[i]) ? HUGE_VAL * 2 : std::abs(static_cast<double>(in[i]));
  };
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    if (std::isnan(in[a]) != std::isnan(in[b])) return std::isnan(in[a]);
    return size(a) > size(b);
  });
  Numbers out(in.size());
  for (std::size_t i = 0; i < count; ++i) out[order[i]] = in[order[i]];
  return out;
}

void expect_largest(const Numbers& in, double ratio, std::size_t count) {
  const Numbers expected = largest_by_sorting(in, count);
  on_every_target([&](const char* target) {
    EXPECT_EQ(bits_of(passed(compress::topk({.ratio = ratio}), in)), bits_of(expected))
        << count << " of " << in.size() << " on " << target;
  });
}

TEST(TopK, AreThoseOfASort) {
  for (const std::size_t count : {1U, 2U, 7U, 64U, 100U, 1000U, 20'011U}) {
    for (const double ratio : {0.001, 0.01, 0.25, 0.5, 1.0}) {
      const auto sent = static_cast<std::size_t>(std::ceil(ratio * static_cast<double>(count)));
      expect_largest(numbers(count), ratio, sent);
    }
  }
}

TEST(TopK, AreTheFirstOfEqualOnes) {
  expect_largest(Numbers(1000, -2.5F), 0.01, 10);
  Numbers few = numbers(5000);
  for (float& x : few) x = std::round(x);  // some dozens of values
  for (const std::size_t sent : {1U, 5U, 50U, 500U, 2500U, 4999U}) {
    expect_largest(few, static_cast<double>(sent) / 5000, sent);
  }
}

TEST(TopK, AreZerosWhereThereIsNothingElse) {
  Numbers in(1000);
  expect_largest(in, 0.01, 10);
  in[700] = -1e-40F;
  expect_largest(in, 0.01, 10);
}

TEST(TopK, TakeNanForLargerThanInfinityAndThatForLargerThanAllElse) {
  Numbers in = numbers(1000);
  in[400] = -kInfinity;
  in[200] = kInfinity;
  in[800] = kNan;
  for (const std::size_t sent : {1U, 2U, 3U, 10U}) expect_largest(in, static_cast<double>(sent) / 1000, sent);
}

TEST(TopK, SendsAtLeastOne) { EXPECT_EQ(passed(compress::topk({.ratio = 1e-9}), {1, -3, 2}), (Numbers{0, -3, 0})); }

}  // namespace topk_test
}  // namespace brigade::comm
