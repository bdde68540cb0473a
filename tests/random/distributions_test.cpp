#include "brigade/random/distributions.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <atomic>
#include <cmath>
#include <functional>
#include <limits>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "brigade/base/error.h"
#include "random/fill.h"
#include "support/errors.h"

namespace brigade::random {
namespace distributions_test {

using Draw = std::function<at::Tensor(at::IntArrayRef shape)>;

const std::vector<std::pair<std::string, Draw>>& draws() {
  static const std::vector<std::pair<std::string, Draw>> kDraws = {
      {"bits8", [](auto shape) { return bits(key(1), shape, 8); }},
      {"bits16", [](auto shape) { return bits(key(1), shape, 16); }},
      {"bits32", [](auto shape) { return bits(key(1), shape, 32); }},
      {"bits64", [](auto shape) { return bits(key(1), shape, 64); }},
      {"uniform", [](auto shape) { return uniform(key(1), shape); }},
      {"uniform elsewhere", [](auto shape) { return uniform(key(1), shape, -2.7, 2.4); }},
      {"uniform of doubles", [](auto shape) { return uniform(key(1), shape, -2.7, 2.4, at::kDouble); }},
      {"randint", [](auto shape) { return randint(key(1), shape, -3, 1000); }},
      {"bernoulli", [](auto shape) { return bernoulli(key(1), 0.3, shape); }},
      {"normal", [](auto shape) { return normal(key(1), shape); }},
      {"normal of doubles", [](auto shape) { return normal(key(1), shape, at::kDouble); }},
      {"truncated_normal", [](auto shape) { return truncated_normal(key(1), -1, 2, shape); }},
      {"exponential", [](auto shape) { return exponential(key(1), shape); }},
      {"gumbel", [](auto shape) { return gumbel(key(1), shape); }},
  };
  return kDraws;
}

TEST(Draws, GiveTheKnownFirstNumbers) {
  EXPECT_TRUE(at::allclose(uniform(key(0), {3}), at::tensor({.947667f, .9785799f, .33229148f}), 0, 1e-7));
  EXPECT_NEAR(uniform(split<2>(key(0))[1], {}).item<float>(), .00729382, 1e-8);
  EXPECT_TRUE(
      at::allclose(normal(key(0), {4}), at::tensor({1.6226422f, 2.0252647f, -.43359444f, -.07861735f}), 2e-6, 5e-7));
  EXPECT_TRUE(at::equal(randint(key(0), {8}, 0, 10), at::tensor({9, 0, 2, 3, 1, 7, 2, 3}, at::kInt)));
}

TEST(Draws, OfAnElementDoNotDependOnHowManyAreDrawn) {
  for (const auto& [name, draw] : draws()) {
    const at::Tensor all = draw({5000});
    for (const std::int64_t n : {0, 1, 2, 63, 64, 65, 1023, 1024, 1025, 4999}) {
      EXPECT_TRUE(at::equal(draw({n}), all.slice(0, 0, n))) << name << " of " << n;
    }
    EXPECT_TRUE(at::equal(draw({50, 1, 100}).flatten(), all)) << name;
  }
}

TEST(Draws, DoNotDependOnTheNumberOfThreads) {
  constexpr std::int64_t kCount = 1'000'003;
  const int before = at::get_num_threads();
  for (const auto& [name, draw] : draws()) {
    at::set_num_threads(1);
    const at::Tensor expected = draw({kCount});
    for (const int threads : {2, 3}) {
      at::set_num_threads(threads);
      EXPECT_TRUE(at::equal(draw({kCount}), expected)) << name << " on " << threads << " threads";
    }
  }
  at::set_num_threads(before);
}

TEST(Draws, UseTheIntraOpThreadsOfTheCaller) {
  const int before = at::get_num_threads();
  at::set_num_threads(3);
  std::atomic<int> chunks = 0;
  std::atomic<std::int64_t> elements = 0;
  for_each_chunk(1'000'000, [&](std::int64_t begin, std::int64_t end) {
    ++chunks;
    elements += end - begin;
  });
  at::set_num_threads(before);
  EXPECT_EQ(chunks, 3);
  EXPECT_EQ(elements, 1'000'000);
}

TEST(Draws, AreTheSameInEveryThread) {
  const at::Tensor expected = normal(key(3), {1000});
  std::vector<at::Tensor> drawn(4);
  {
    std::vector<std::jthread> threads;
    for (at::Tensor& mine : drawn) threads.emplace_back([&mine] { mine = normal(key(3), {1000}); });
  }
  for (const at::Tensor& mine : drawn) EXPECT_TRUE(at::equal(mine, expected));
}

TEST(Draws, TakeScalarAndEmptyShapes) {
  for (const auto& [name, draw] : draws()) {
    EXPECT_EQ(draw({}).dim(), 0) << name;
    EXPECT_EQ(draw({3, 0, 2}).sizes(), (at::IntArrayRef{3, 0, 2})) << name;
  }
}

TEST(Draws, RefuseNegativeAndImpossibleSizes) {
  for (const auto& [name, draw] : draws()) {
    SCOPED_TRACE(name);
    EXPECT_ERROR(draw({4, -2}), ShapeError, "shape [4, -2] has the negative size -2 on axis 1");
  }
  EXPECT_ERROR(normal(key(0), {1LL << 40, 1LL << 40}), ShapeError, "more elements than memory can hold");
}

TEST(Draws, RefuseOtherTypes) {
  for (const at::ScalarType dtype : {at::kHalf, at::kBFloat16, at::kInt, at::kBool, at::kComplexFloat}) {
    EXPECT_ERROR(uniform(key(0), {1}, 0, 1, dtype), InvalidArgument, "random::uniform: draws Float or Double, not ");
    EXPECT_ERROR(normal(key(0), {1}, dtype), InvalidArgument, "random::normal: ");
    EXPECT_ERROR(truncated_normal(key(0), -1, 1, {1}, dtype), InvalidArgument, "random::truncated_normal: ");
    EXPECT_ERROR(exponential(key(0), {1}, dtype), InvalidArgument, "random::exponential: ");
    EXPECT_ERROR(gumbel(key(0), {1}, dtype), InvalidArgument, "draw Float and convert with .to(...)");
  }
  EXPECT_ERROR(bits(key(0), {1}, 24), InvalidArgument, "width is 24; give 8, 16, 32 or 64");
}

// ---------------------------------------------------------------- moments

// Mean and variance of a million draws, within five standard errors of the closed form.
void expect_moments(const at::Tensor& draws, double mean, double variance, double fourth_central_moment) {
  const at::Tensor x = draws.to(at::kDouble);
  const double n = static_cast<double>(x.numel());
  EXPECT_NEAR(x.mean().item<double>(), mean, 5 * std::sqrt(variance / n));
  EXPECT_NEAR((x - mean).square().mean().item<double>(), variance,
              5 * std::sqrt((fourth_central_moment - variance * variance) / n));
}

TEST(Moments, AreThoseOfTheDistributions) {
  constexpr double kPi = 3.14159265358979323846;
  const std::vector<std::int64_t> shape = {1'000'000};
  for (const at::ScalarType dtype : {at::kFloat, at::kDouble}) {
    expect_moments(uniform(key(7), shape, -1, 3, dtype), 1.0, 4.0 / 3, 16.0 / 5);
    expect_moments(normal(key(7), shape, dtype), 0.0, 1.0, 3.0);
    expect_moments(exponential(key(7), shape, dtype), 1.0, 1.0, 9.0);
    const double gumbel_variance = kPi * kPi / 6;
    expect_moments(gumbel(key(7), shape, dtype), 0.57721566490153286, gumbel_variance,
                   5.4 * gumbel_variance * gumbel_variance);
    const double cut_variance = 0.87962566103423978 * 0.87962566103423978;
    expect_moments(truncated_normal(key(7), -2, 2, shape, dtype), 0.0, cut_variance, 1.5);
  }
  expect_moments(bernoulli(key(7), 0.3, shape), 0.3, 0.21, 0.21 * (1 - 3 * 0.21));
  expect_moments(randint(key(7), shape, 0, 6), 2.5, 35.0 / 12, 707.0 / 48);
  expect_moments(bits(key(7), shape, 8), 127.5, 65535.0 / 12, 65535.0 * (3 * 65536.0 - 7) / 240);
}

// ---------------------------------------------------------------- ranges

RC_GTEST_PROP(Uniform, StaysInItsInterval, (std::int64_t seed)) {
  const auto a = *rc::gen::inRange(-1000, 1000);
  const auto width = *rc::gen::inRange(1, 1000);
  for (const at::ScalarType dtype : {at::kFloat, at::kDouble}) {
    const at::Tensor x = uniform(key(seed), {1000}, a, a + width, dtype);
    RC_ASSERT(x.min().item<double>() >= a);
    RC_ASSERT(x.max().item<double>() <= a + width);
  }
}

TEST(Uniform, OfAnEmptyOrUnboundedIntervalIsAnError) {
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_TRUE(at::equal(uniform(key(0), {3}, 2, 2), at::full({3}, 2.0)));
  EXPECT_ERROR(uniform(key(0), {3}, 1, 0), InvalidArgument, "the interval [1, 0) is empty; give low <= high");
  EXPECT_ERROR(uniform(key(0), {3}, std::nan(""), 0), InvalidArgument, "is empty");
  EXPECT_ERROR(uniform(key(0), {3}, 0, infinity), InvalidArgument, "not finite");
  EXPECT_ERROR(uniform(key(0), {3}, -3e38, 3e38), InvalidArgument, "high - low is not finite in Float");
  EXPECT_TRUE(uniform(key(0), {3}, -3e38, 3e38, at::kDouble).isfinite().all().item<bool>());
}

TEST(Randint, GivesAllIntegersOfTheRangeAndNoOther) {
  const at::Tensor drawn = randint(key(5), {2000}, -3, 4);
  std::set<int> values(drawn.data_ptr<int>(), drawn.data_ptr<int>() + drawn.numel());
  EXPECT_EQ(values, (std::set<int>{-3, -2, -1, 0, 1, 2, 3}));
}

TEST(Randint, GivesLowWhenTheRangeIsEmpty) {
  EXPECT_TRUE(at::equal(randint(key(0), {5}, 3, 3), at::full({5}, 3, at::kInt)));
  EXPECT_TRUE(at::equal(randint(key(0), {5}, 3, -8), at::full({5}, 3, at::kInt)));
}

TEST(Randint, TakesAllThirtyTwoBits) {
  constexpr std::int64_t kLow = std::numeric_limits<std::int32_t>::min();
  const at::Tensor all = randint(key(0), {1000}, kLow, -kLow);
  // With 2^32 values the remainder changes nothing: the offset is the bits of the second half of the key.
  EXPECT_TRUE(at::equal(all, bits(split<2>(key(0))[1], {1000}) + static_cast<int>(kLow)));
  EXPECT_ERROR(randint(key(0), {1}, kLow - 1, 0), InvalidArgument, "does not fit 32-bit integers");
  EXPECT_ERROR(randint(key(0), {1}, 0, -kLow + 1), InvalidArgument, "a high of at most 2147483648");
}

TEST(Bernoulli, IsUniformBelowP) {
  for (const double p : {0.0, 1e-9, 0.1, 0.5, 0.9, 1.0}) {
    EXPECT_TRUE(at::equal(bernoulli(key(2), p, {10'000}), uniform(key(2), {10'000}) < static_cast<float>(p))) << p;
  }
  EXPECT_ERROR(bernoulli(key(0), 1.5, {1}), InvalidArgument, "p is 1.5; give a probability from 0 to 1");
  EXPECT_ERROR(bernoulli(key(0), -0.1, {1}), InvalidArgument, "p is -0.1");
  EXPECT_ERROR(bernoulli(key(0), std::nan(""), {1}), InvalidArgument, "p is nan");
}

TEST(TruncatedNormal, StaysStrictlyBetweenItsBounds) {
  for (const at::ScalarType dtype : {at::kFloat, at::kDouble}) {
    for (const auto& [low, high] : {std::pair{-2.0, 2.0}, {0.5, 0.6}, {-1.0, 8.0}, {3.0, 4.0}, {-20.0, 20.0}}) {
      const at::Tensor x = truncated_normal(key(4), low, high, {100'000}, dtype);
      EXPECT_GT(x.min().item<double>(), low);
      EXPECT_LT(x.max().item<double>(), high);
    }
    const at::Tensor half = truncated_normal(key(4), 0, std::numeric_limits<double>::infinity(), {100'000}, dtype);
    EXPECT_TRUE(half.isfinite().all().item<bool>());
    EXPECT_NEAR(half.mean().item<double>(), std::sqrt(2 / 3.14159265358979), 0.02);
  }
  EXPECT_ERROR(truncated_normal(key(0), 2, 2, {1}), InvalidArgument, "nothing lies between 2 and 2; give low < high");
  EXPECT_ERROR(truncated_normal(key(0), 2, std::nan(""), {1}), InvalidArgument, "nothing lies between 2 and nan");
}

// ---------------------------------------------------------------- categories

TEST(Categorical, DrawsEachCategoryAsOftenAsItsProbability) {
  const at::Tensor p = at::tensor({0.1, 0.2, 0.3, 0.4}, at::kDouble);
  const at::Tensor drawn = categorical(key(6), p.log(), {200'000});
  EXPECT_EQ(drawn.scalar_type(), at::kLong);
  const at::Tensor share = drawn.bincount({}, 4).to(at::kDouble) / 200'000;
  EXPECT_TRUE(at::allclose(share, p, 0, 0.006)) << share;
}

TEST(Categorical, DrawsForEveryRowOfTheLogits) {
  // One category has all the probability, another in each row.
  const at::Tensor certain = at::eye(5).log();
  const at::Tensor expected = at::arange(5);
  EXPECT_TRUE(at::equal(categorical(key(0), certain), expected));
  EXPECT_TRUE(at::equal(categorical(key(0), certain, {7, 5}), expected.expand({7, 5})));
  const at::Tensor broadcast = categorical(key(0), certain.slice(0, 2, 3), {7});
  EXPECT_TRUE(at::equal(broadcast, at::full({7}, 2, at::kLong)));
}

TEST(Categorical, RefusesLogitsAndShapesThatDoNotFit) {
  const at::Tensor logits = at::zeros({3, 4});
  EXPECT_ERROR(categorical(key(0), at::zeros({})), ShapeError, "give [..., categories]");
  EXPECT_ERROR(categorical(key(0), at::zeros({3, 0})), ShapeError, "logits [3, 0] have no categories");
  EXPECT_ERROR(categorical(key(0), logits, at::IntArrayRef()), ShapeError, "shape [] does not fit logits [3, 4]");
  EXPECT_ERROR(categorical(key(0), logits, {2}), ShapeError, "let it end in [3]");
  EXPECT_ERROR(categorical(key(0), logits, {-1, 3}), ShapeError, "negative size -1 on axis 0");
  EXPECT_ERROR(categorical(key(0), logits.to(at::kLong)), InvalidArgument, "draws Float or Double, not Long");
}

}  // namespace distributions_test
}  // namespace brigade::random
