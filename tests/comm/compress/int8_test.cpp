#include <algorithm>

#include "comm/compress/support.h"

namespace brigade::comm {
namespace int8_test {

using namespace testing;

constexpr std::size_t kBlock = 256;

float largest_of(std::span<const float> block) {
  float largest = 0;
  for (const float x : block) largest = std::max(largest, std::abs(x));
  return largest;
}

// A level, at most a rounding above the quotient.
double level_of(const Numbers& in, std::size_t i) {
  const std::size_t begin = i / kBlock * kBlock;
  return static_cast<double>(largest_of(std::span(in).subspan(begin, std::min(kBlock, in.size() - begin)))) / 127;
}

// codecs.h in plain C++: one number at a time, each with its 16 bits of the block that four of a group share.
Numbers plain_int8(const Numbers& in, ThreefryKey key) {
  Numbers out;
  for (std::size_t i = 0; i < in.size(); ++i) {
    const std::size_t begin = i / kBlock * kBlock;
    const float largest = largest_of(std::span(in).subspan(begin, std::min(kBlock, in.size() - begin)));
    float scale = largest / 127;
    if (static_cast<double>(scale) * 127 < static_cast<double>(largest)) scale = std::nextafter(scale, kInfinity);
    const auto words = threefry2x32(key, i / 64 * 16 + i % 16);
    const std::uint32_t bits = words[i % 64 / 32] >> (i % 32 / 16 * 16) & 0xFFFF;
    const float u = (static_cast<float>(bits) + 0.5F) / 65536;
    const float level = scale == 0 ? 0 : std::clamp(std::floor(in[i] / scale + u), -127.0F, 127.0F);
    out.push_back(level * scale);
  }
  return out;
}

TEST(Int8, IsThatOfAPlainLoop) {
  for (const std::size_t count : {1U, 15U, 64U, 100U, 256U, 1000U, 5003U}) {
    const Numbers in = numbers(count);
    const Numbers expected = plain_int8(in, kKey);
    on_every_target([&](const char* target) {
      EXPECT_EQ(bits_of(passed(compress::int8(), in)), bits_of(expected)) << count << " on " << target;
    });
  }
}

TEST(Int8, IsWithinOneLevel) {
  const Numbers in = numbers(10'007);
  const Numbers out = passed(compress::int8(), in);
  for (std::size_t i = 0; i < in.size(); ++i) {
    ASSERT_LE(std::abs(static_cast<double>(out[i]) - static_cast<double>(in[i])), level_of(in, i) * (1 + 1e-5)) << i;
  }
}

// A number that is f of a level above the lower one is rounded up with probability f, up to 2^-17, so the error of one draw has a mean
// of at most 2^-17 levels and a variance of f (1 - f) <= 1/4; six standard deviations are not exceeded by chance.
TEST(Int8, IsUnbiased) {
  constexpr int kDraws = 4000;
  const Numbers in = numbers(600);
  std::vector<double> errors(in.size());  // in levels
  for (std::uint32_t draw = 0; draw < kDraws; ++draw) {
    const Numbers out = passed(compress::int8(), in, ThreefryKey{7, draw});
    for (std::size_t i = 0; i < in.size(); ++i) {
      errors[i] += (static_cast<double>(out[i]) - static_cast<double>(in[i])) / level_of(in, i) / kDraws;
    }
  }
  double mean = 0;
  for (std::size_t i = 0; i < in.size(); ++i) {
    EXPECT_LE(std::abs(errors[i]), 0x1p-16 + 6 * 0.5 / std::sqrt(kDraws)) << i;
    mean += errors[i] / static_cast<double>(in.size());
  }
  EXPECT_LE(std::abs(mean), 0x1p-16 + 6 * 0.5 / std::sqrt(kDraws * static_cast<double>(in.size())));
}

TEST(Int8, KeepsLevelsWhateverTheKeyIs) {
  Numbers in;
  for (int level = -127; level <= 127; ++level) in.push_back(0.25F * static_cast<float>(level));
  for (std::uint32_t key = 0; key < 100; ++key) EXPECT_EQ(passed(compress::int8(), in, ThreefryKey{key, 1}), in);
}

TEST(Int8, DrawsFromTheKeyAndFromNothingElse) {
  const Numbers in = numbers(1000);
  EXPECT_EQ(encoded(compress::int8(), in, in.size(), {1, 2}), encoded(compress::int8(), in, in.size(), {1, 2}));
  EXPECT_NE(encoded(compress::int8(), in, in.size(), {1, 2}), encoded(compress::int8(), in, in.size(), {1, 3}));
}

// Down to the smallest number there is, whose quotient by 127 is none, and up to the largest, whose levels must not overflow.
TEST(Int8, IsWithinOneLevelOfNumbersOfAnySize) {
  for (const float largest : {1e-44F, 1e-40F, 1e-36F, 1.0F, 3e38F, std::numeric_limits<float>::max()}) {
    const Numbers in = {largest, -largest, largest / 3, 0, -largest / 100};
    const Numbers out = passed(compress::int8(), in);
    const double level = std::max(static_cast<double>(largest) / 127 * 1.01, 0x1p-149);
    for (std::size_t i = 0; i < in.size(); ++i) {
      EXPECT_LE(std::abs(static_cast<double>(out[i]) - static_cast<double>(in[i])), level) << largest << ", " << i;
    }
  }
}

TEST(Int8, MakesTheBlockNanThatHoldsOne) {
  for (const float bad : {kNan, kInfinity, -kInfinity}) {
    Numbers in = numbers(3 * kBlock);
    in[kBlock + 7] = bad;
    const Numbers out = passed(compress::int8(), in);
    const Numbers expected = plain_int8(in, kKey);
    for (std::size_t i = 0; i < in.size(); ++i) {
      if (i / kBlock == 1) {
        EXPECT_TRUE(std::isnan(out[i])) << i;
      } else {
        EXPECT_EQ(out[i], expected[i]) << i;
      }
    }
  }
}

}  // namespace int8_test
}  // namespace brigade::comm
