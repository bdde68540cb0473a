// pmean, plain and weighted.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "brigade/brigade.h"
#include "support/nine_devices.h"
#include "support/tree_sum.h"

namespace brigade {
namespace mean_test {

using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

template <class F>
auto mapped(F f) {
  return pmap(f, {.axis_name = "i"});
}

TEST(Pmean, OfBoolIsFloat) {
  const torch::Tensor b = torch::tensor({true, false, true, true}).reshape({2, 2});
  const auto mean = mapped([](torch::Tensor t) { return lax::pmean(t, "i"); })(b);
  EXPECT_EQ(mean[0].scalar_type(), torch::kFloat);
  EXPECT_TRUE(torch::equal(mean[0], torch::tensor({1.0F, 0.5F})));
}

TEST(Pmean, OfIntegersDoesNotOverflow) {
  const torch::Tensor x = torch::full({3, 1}, 2'000'000'000, torch::kInt);
  EXPECT_EQ(mapped([](torch::Tensor t) { return lax::pmean(t, "i"); })(x)[0].item<float>(), 2e9F);
}

TEST(Pmean, OfDifferentIntegerTypesIsAMismatch) {
  EXPECT_THAT(
      [] {
        mapped([](torch::Tensor t) { return lax::pmean(lax::axis_index("i") == 0 ? t : t.to(torch::kLong), "i"); })(
            torch::ones({2, 1}, torch::kInt));
      },
      ThrowsMessage<CollectiveMismatch>(HasSubstr("from Int")));
}

TEST(Pmean, OfAMixedTreeHasTheBitsOfItsLeavesAloneAndMeetsOnce) {
  const torch::Tensor x = torch::randn({7, 33}) * 100;
  const std::vector<torch::ScalarType> types = {torch::kInt,   torch::kHalf,   torch::kBFloat16,
                                                torch::kFloat, torch::kDouble, torch::kComplexFloat};
  const auto together = mapped([&](torch::Tensor t) {
    std::vector<torch::Tensor> leaves;
    for (const auto type : types) leaves.push_back(t.to(type));
    const comm::Group& group = find_axis("i", std::source_location::current()).group();
    const std::int64_t before = group.statistics().calls;
    leaves = lax::pmean(std::move(leaves), "i");
    EXPECT_EQ(group.statistics().calls, before + 1);
    return leaves;
  });
  const auto mixed = together(x);
  for (std::size_t k = 0; k < types.size(); ++k) {
    const auto alone = mapped([type = types[k]](torch::Tensor t) { return lax::pmean(t.to(type), "i"); })(x);
    EXPECT_TRUE(torch::equal(mixed[3][k], alone[3])) << types[k];
  }
}

TEST(Pmean, IsTheSumDividedOnce) {
  for (std::int64_t n = 1; n <= 9; ++n) {
    const torch::Tensor x = torch::randn({n, 40});
    const auto out = mapped([](torch::Tensor t) { return lax::pmean(t, "i"); })(x);
    for (int k = 0; k < 40; ++k) {
      std::vector<float> column;
      for (std::int64_t i = 0; i < n; ++i) column.push_back(x[i][k].item<float>());
      EXPECT_EQ(out[0][k].item<float>(), tree_sum(column) / static_cast<float>(n));
    }
  }
}

// The rows of a batch, of which every device has another number, and their plain mean.
struct UnevenRows {
  std::vector<torch::Tensor> shards;
  torch::Tensor mean;
};

UnevenRows uneven_rows(std::vector<std::int64_t> counts) {
  UnevenRows rows;
  for (const std::int64_t count : counts) {
    rows.shards.push_back(torch::randint(-50, 50, {count, 3}).to(torch::kDouble));
  }
  rows.mean = torch::cat(rows.shards).mean(0);
  return rows;
}

TEST(WeightedPmean, IsTheMeanOverAllRowsOfUnevenShards) {
  const std::vector<std::int64_t> counts = {1, 5, 2};
  const UnevenRows rows = uneven_rows(counts);
  const auto f = mapped([&](torch::Tensor) {
    const auto i = static_cast<std::size_t>(lax::axis_index("i"));
    return std::pair(lax::pmean(rows.shards[i].mean(0), "i", {.weight = counts[i]}),
                     lax::pmean(rows.shards[i].mean(0), "i", {.weight = torch::tensor({counts[i]})}));
  })(torch::ones(3));
  EXPECT_TRUE(torch::allclose(f[1].first, rows.mean, 1e-14, 1e-14));
  EXPECT_TRUE(torch::equal(f[1].first, f[2].second));
}

TEST(WeightedPmean, ADeviceWithoutRowsCountsForNothing) {
  const UnevenRows rows = uneven_rows({4, 0, 2});
  const auto f = mapped([&](torch::Tensor) {
    const torch::Tensor& own = rows.shards[static_cast<std::size_t>(lax::axis_index("i"))];
    return lax::pmean(own.mean(0), "i", {.weight = own.size(0)});
  })(torch::ones(3));
  EXPECT_TRUE(torch::allclose(f[1], rows.mean, 1e-14, 1e-14));
}

TEST(WeightedPmean, WithEqualWeightsHasTheBitsOfThePlainOne) {
  for (const auto type : {torch::kHalf, torch::kBFloat16, torch::kFloat, torch::kDouble, torch::kComplexFloat,
                          torch::kInt, torch::kBool}) {
    const torch::Tensor x = (torch::randn({7, 100}) * 10).to(type);
    const auto out =
        mapped([](torch::Tensor t) { return std::pair(lax::pmean(t, "i"), lax::pmean(t, "i", {.weight = 1})); })(x);
    EXPECT_EQ(out[3].second.scalar_type(), out[3].first.scalar_type());
    EXPECT_TRUE(torch::equal(out[3].first, out[3].second)) << type;
  }
}

TEST(WeightedPmean, TakesTreesWithNumbers) {
  const auto out = mapped([](torch::Tensor t) {
    return lax::pmean(std::tuple(t, t.to(torch::kInt), 1.0 + lax::axis_index("i")), "i", {.weight = t});
  })(torch::tensor({1.0, 3.0}));
  EXPECT_EQ(std::get<0>(out[0]).item<double>(), 2.5);
  EXPECT_EQ(std::get<1>(out[0]).item<float>(), 2.5F);
  EXPECT_EQ(std::get<2>(out[0]), 1.75);
}

// With m = sum(w x) / sum(w) on every device and the loss sum over devices of c_i m: dx_i = w_i C / W and
// dw_i = C (x_i - m) / W, where C is the sum of c.
TEST(WeightedPmean, HasTheGradientsOfTheFormula) {
  const torch::Tensor x = torch::tensor({1.0, -2.0, 5.0}, torch::kDouble);
  const torch::Tensor w = torch::tensor({2.0, 1.0, 3.0}, torch::kDouble);
  const torch::Tensor c = torch::tensor({1.0, 10.0, 100.0}, torch::kDouble);
  const auto f = mapped([](torch::Tensor t, torch::Tensor weight) { return lax::pmean(t, "i", {.weight = weight}); });
  const auto loss = [&](const std::pair<torch::Tensor, torch::Tensor>& p) {
    return (f(p.first, p.second).stack() * c).sum();
  };
  const auto [dx, dw] = grad(loss)(std::pair(x, w));
  const double total = 6, mean = (2.0 - 2.0 + 15.0) / total;
  EXPECT_TRUE(torch::allclose(dx, w * 111 / total, 1e-14));
  EXPECT_TRUE(torch::allclose(dw, 111 * (x - mean) / total, 1e-14, 1e-14));
}

TEST(WeightedPmean, HasGradientsWhereOneWeightIsZero) {
  const torch::Tensor x = torch::tensor({1.0, -2.0, 5.0}, torch::kDouble);
  const torch::Tensor w = torch::tensor({2.0, 0.0, 3.0}, torch::kDouble);
  const auto f = mapped([](torch::Tensor t, torch::Tensor weight) { return lax::pmean(t, "i", {.weight = weight}); });
  const auto loss = [&](const std::pair<torch::Tensor, torch::Tensor>& p) { return f(p.first, p.second)[0]; };
  const auto [dx, dw] = grad(loss)(std::pair(x, w));
  EXPECT_TRUE(torch::allclose(dx, w / 5, 1e-14));
  EXPECT_TRUE(torch::allclose(dw, (x - 17.0 / 5) / 5, 1e-14));
  // What is not finite there reaches neither value nor gradient of the others.
  const torch::Tensor bad = torch::tensor({1.0, std::nan(""), 5.0}, torch::kDouble);
  const auto [bad_dx, bad_dw] = grad(loss)(std::pair(bad, w));
  EXPECT_TRUE(torch::equal(bad_dx, dx));
  EXPECT_TRUE(bad_dw.isfinite().all().item<bool>());
}

TEST(WeightedPmean, RefusesWeightsThatGiveNoMean) {
  const auto with = [](auto weight) {
    return [weight] {
      mapped([&](torch::Tensor t) { return lax::pmean(t, "i", {.weight = weight}); })(torch::ones({3, 2}));
    };
  };
  EXPECT_THAT(with(0), ThrowsMessage<InvalidArgument>(
                           AllOf(HasSubstr("the weights of a pmean add up to 0"), HasSubstr("mean_test.cpp:"))));
  EXPECT_THAT(with(torch::ones({2})), ThrowsMessage<ShapeError>(HasSubstr("the weight of a pmean has shape [2]")));
  EXPECT_THAT(with(torch::ones({}, torch::kComplexFloat)),
              ThrowsMessage<InvalidArgument>(HasSubstr("the weight of a pmean is complex")));
}

}  // namespace mean_test
}  // namespace brigade
