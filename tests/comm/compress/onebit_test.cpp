#include "comm/compress/support.h"

namespace brigade::comm {
namespace onebit_test {

using namespace testing;

TEST(OneBit, GivesTheMeansOfBothSigns) {
  EXPECT_EQ(passed(compress::onebit(), {1, 3, -2, -6, 8, -1}), (Numbers{4, 4, -3, -3, 4, -3}));
}

TEST(OneBit, TakesZerosForNotBelow) {
  EXPECT_EQ(passed(compress::onebit(), {0, -0.0F, 3, -5}), (Numbers{1, 1, 1, -5}));
  EXPECT_EQ(passed(compress::onebit(), {0, 0}), (Numbers{0, 0}));
  EXPECT_EQ(passed(compress::onebit(), {-1, -2, -3}), (Numbers{-2, -2, -2}));
}

TEST(OneBit, HasTheMeansOfEachBlock) {
  constexpr std::size_t kBlock = 128;
  for (const std::size_t count : {1U, 63U, 64U, 127U, 128U, 129U, 1000U, 5003U}) {
    const Numbers in = numbers(count);
    const Numbers out = passed(compress::onebit({.block = kBlock}), in);
    for (std::size_t begin = 0; begin < count; begin += kBlock) {
      const std::size_t end = std::min(begin + kBlock, count);
      long double sums[2] = {};
      int counts[2] = {};
      for (std::size_t i = begin; i < end; ++i) {
        sums[in[i] < 0] += in[i];
        ++counts[in[i] < 0];
      }
      for (std::size_t i = begin; i < end; ++i) {
        const auto mean = static_cast<double>(sums[in[i] < 0] / counts[in[i] < 0]);
        ASSERT_NEAR(out[i], mean, 1e-7 * std::abs(mean)) << i << " of " << count;
      }
    }
  }
}

TEST(OneBit, DoesNotOverflow) {
  constexpr float kLargest = std::numeric_limits<float>::max();
  const Numbers in(1000, kLargest);
  EXPECT_EQ(passed(compress::onebit(), in), in);
}

TEST(OneBit, MakesTheBlockNanThatHoldsOne) {
  constexpr std::size_t kBlock = 64;
  for (const float bad : {kNan, kInfinity, -kInfinity}) {
    Numbers in = numbers(3 * kBlock);
    in[kBlock + 7] = bad;
    const Numbers out = passed(compress::onebit({.block = kBlock}), in);
    for (std::size_t i = 0; i < in.size(); ++i) EXPECT_EQ(std::isnan(out[i]), i / kBlock == 1) << i;
  }
}

}  // namespace onebit_test
}  // namespace brigade::comm
