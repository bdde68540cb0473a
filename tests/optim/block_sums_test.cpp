#include "brigade/optim/block_sums.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "brigade/base/error.h"
#include "optim/plain_rules.h"
#include "optim/rules.h"
#include "support/errors.h"

namespace brigade::optim::testing {
namespace block_sums_test {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

template <class T>
std::vector<double> sums_of(const std::vector<T>& values, const Step& step = {}) {
  std::vector<double> sums(block_count(values.size()), kNan);
  sums_of_squares(std::span<const T>(values), step, sums);
  return sums;
}

template <class T>
class BlockSums : public ::testing::Test {};
using Dtypes = ::testing::Types<float, double>;
TYPED_TEST_SUITE(BlockSums, Dtypes);

TYPED_TEST(BlockSums, AreThoseOfAPlainLoopOnEveryInstructionSet) {
  for (const std::size_t count : {0, 1, 15, 16, 17, 100, 4095, 4096, 4097, 3 * 4096 + 5}) {
    const auto values = numbers<TypeParam>(count, 3);
    std::vector<double> expected;
    for (std::size_t begin = 0; begin < count; begin += 4096) {
      const auto end = std::min(begin + 4096, count);
      expected.push_back(plain::sum_of_squares(std::vector(values.begin() + begin, values.begin() + end)));
    }
    on_every_target([&](const char* target) {
      std::vector<double> sums(block_count(count), kNan);
      sums_of_squares(std::span<const TypeParam>(values), sums);
      EXPECT_EQ(sums, expected) << target << ", " << count << " elements";
      EXPECT_EQ(sums_of(values), expected) << target << ", " << count << " elements";
    });
  }
}

TYPED_TEST(BlockSums, AreAnchoredAtBordersOfBlocks) {
  const auto values = numbers<TypeParam>(5 * 4096 + 77, 1);
  const std::vector<double> whole = sums_of(values);
  for (std::size_t cut = 0; cut <= 5; ++cut) {
    std::vector<double> parts = sums_of(std::vector(values.begin(), values.begin() + cut * 4096));
    const std::vector<double> rest = sums_of(std::vector(values.begin() + cut * 4096, values.end()));
    parts.insert(parts.end(), rest.begin(), rest.end());
    EXPECT_EQ(parts, whole) << "cut at block " << cut;
  }
}

TYPED_TEST(BlockSums, AreOfTheGradientThatARuleSees) {
  const auto gradient = numbers<TypeParam>(4096 + 100, 2);
  for (const Step& step : {Step{.divisor = 48, .clip_factor = 0.7}, Step{.divisor = 0.7, .clip_value = 0.3}}) {
    auto seen = gradient;
    for (TypeParam& g : seen) g = plain::prepared(step, g);
    on_every_target([&](const char* target) { EXPECT_EQ(sums_of(gradient, step), sums_of(seen)) << target; });
  }
}

TYPED_TEST(BlockSums, OfABlockWithANonFiniteElementAreNotFinite) {
  for (const double bad : {kInf, -kInf, kNan}) {
    for (const std::size_t at : {std::size_t{0}, std::size_t{4095}, std::size_t{4096}, std::size_t{8200}}) {
      auto values = numbers<TypeParam>(2 * 4096 + 9, 4);
      values[at] = static_cast<TypeParam>(bad);
      on_every_target([&](const char* target) {
        for (const Step& step : {Step{}, Step{.divisor = 3, .clip_factor = 0.5, .clip_value = 0.1}}) {
          const std::vector<double> sums = sums_of(values, step);
          for (std::size_t b = 0; b < sums.size(); ++b) {
            EXPECT_EQ(std::isfinite(sums[b]), b != at / 4096)
                << target << ", " << bad << " at " << at << ", block " << b;
          }
        }
      });
      EXPECT_EQ(first_non_finite(std::span<const TypeParam>(values)), at);
    }
  }
}

TYPED_TEST(BlockSums, OfFiniteElementsThatOverflowAreToldApart) {
  const std::vector<TypeParam> large(100, std::numeric_limits<TypeParam>::max());
  EXPECT_EQ(first_non_finite(std::span<const TypeParam>(large)), std::nullopt);
  EXPECT_EQ(std::isfinite(sums_of(large)[0]), sizeof(TypeParam) == 4);
}

TEST(TreeSum, AddsInTheOrderOfTheTree) {
  EXPECT_EQ(optim::tree_sum({}), 0);
  for (std::size_t count = 1; count < 70; ++count) {
    const auto values = numbers<double>(count, 5);
    EXPECT_EQ(optim::tree_sum(values), brigade::tree_sum(values)) << count;
  }
}

TEST(BlockSumsErrors, NameWhatDoesNotFit) {
  const std::vector<float> values(4097);
  std::vector<double> sums(1);
  EXPECT_ERROR(sums_of_squares(std::span<const float>(values), sums), ShapeError,
               "4097 elements have 2 blocks of 4096, and there is room for 1 sums");
}

// Divisors by which the quotient in double is the middle of two float32, while the exact one lies beside it.
TEST(PreparedGradient, IsRoundedOnce) {
  int rounded_wrongly_twice = 0;
  for (int i = 0; i < 2000; ++i) {
    const float x = 1 + 0x1p-23F * static_cast<float>(7919LL * i % (1 << 23));
    const double middle = 1 + 0x1p-24 * static_cast<double>(2 * (104729LL * i % (1 << 22)) + 1);
    const double divisor = x / middle;
    if (static_cast<float>(x / divisor) != plain::quotient(x, divisor)) ++rounded_wrongly_twice;
    const std::vector<float> gradient = {x, -x, 0, x * 0x1p-140F, 3, 5, 7, 11, -13, x};
    std::vector<double> squares(16);
    for (std::size_t k = 0; k < gradient.size(); ++k) {
      const double seen = plain::quotient(gradient[k], divisor);
      squares[k] = seen * seen;
    }
    EXPECT_EQ(sums_of(gradient, {.divisor = divisor})[0], brigade::tree_sum(squares)) << x << " / " << divisor;
  }
  EXPECT_GT(rounded_wrongly_twice, 100);
}

}  // namespace block_sums_test
}  // namespace brigade::optim::testing
