#include "brigade/random/initializers.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "brigade/base/error.h"
#include "brigade/random/distributions.h"
#include "support/errors.h"

namespace brigade::random {
namespace initializers_test {

void expect_variance(const at::Tensor& weights, double variance, double bound) {
  EXPECT_NEAR(weights.square().mean().item<double>() / variance, 1.0, 0.02);
  EXPECT_NEAR(weights.mean().item<double>() / std::sqrt(variance), 0.0, 0.02);
  EXPECT_LE(weights.abs().max().item<double>(), bound);
}

TEST(Initializers, HaveTheVarianceOfTheirPapers) {
  const std::vector<std::int64_t> shape = {300, 500};
  const auto uniform_bound = [](double variance) { return std::sqrt(3 * variance) * (1 + 1e-6); };
  const auto normal_bound = [](double variance) { return 2 * std::sqrt(variance) / 0.87962566 * (1 + 1e-6); };
  const double glorot = 2.0 / 800;
  const double he = 2.0 / 300;
  const double lecun = 1.0 / 300;
  expect_variance(glorot_uniform(key(1), shape), glorot, uniform_bound(glorot));
  expect_variance(glorot_normal(key(1), shape), glorot, normal_bound(glorot));
  expect_variance(he_uniform(key(1), shape), he, uniform_bound(he));
  expect_variance(he_normal(key(1), shape), he, normal_bound(he));
  expect_variance(lecun_uniform(key(1), shape), lecun, uniform_bound(lecun));
  expect_variance(lecun_normal(key(1), shape), lecun, normal_bound(lecun));
}

TEST(Initializers, CountTheReceptiveFieldOfAConvolution) {
  // Height, width, in, out.
  const at::Tensor weights = lecun_normal(key(1), {3, 5, 16, 64});
  const at::Tensor cut = truncated_normal(key(1), -2, 2, {3, 5, 16, 64});
  EXPECT_TRUE(at::allclose(weights, cut * (std::sqrt(1.0 / (3 * 5 * 16)) / 0.87962566103423978), 1e-6, 0));
}

TEST(Initializers, TakeTheLayoutOfTorch) {
  const std::vector<std::int64_t> shape = {64, 16, 3, 5};
  const at::Tensor cut = truncated_normal(key(1), -2, 2, shape);
  const at::Tensor weights = he_normal(key(1), shape, kTorchFanAxes);
  EXPECT_TRUE(at::allclose(weights, cut * (std::sqrt(2.0 / (16 * 3 * 5)) / 0.87962566103423978), 1e-6, 0));
}

TEST(Initializers, TakeAnyFanAndDistribution) {
  const at::Tensor by_out =
      variance_scaling(key(1), {40, 10}, {4.0, Fan::kOut, WeightDistribution::kNormal, {}}, at::kDouble);
  EXPECT_TRUE(at::allclose(by_out, normal(key(1), {40, 10}, at::kDouble) * std::sqrt(4.0 / 10), 1e-14, 0));
}

TEST(Initializers, OfNoWeightsAreEmpty) { EXPECT_EQ(he_normal(key(0), {0, 5}).numel(), 0); }

TEST(Initializers, RefuseShapesWithoutTwoAxes) {
  EXPECT_ERROR(he_normal(key(0), {5}), ShapeError, "shape [5] needs two or more axes");
  EXPECT_ERROR(he_normal(key(0), {5, -1}), ShapeError, "negative size -1 on axis 1");
  EXPECT_ERROR(he_normal(key(0), {5, 6}, {.in = 2, .out = 0}), ShapeError, "has no axis 2 for the inputs; set FanAxes");
  EXPECT_ERROR(he_normal(key(0), {5, 6}, {.in = 1, .out = -1}), ShapeError, "cannot count both inputs and outputs");
  EXPECT_ERROR(he_normal(key(0), {5, 6}, {}, at::kHalf), InvalidArgument, "draws Float or Double, not Half");
  EXPECT_ERROR(variance_scaling(key(0), {5, 6}, {.scale = 0.0}), InvalidArgument,
               "the scale is 0; give a positive number");
}

}  // namespace initializers_test
}  // namespace brigade::random
