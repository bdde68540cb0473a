#include "brigade/transform/grad.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include <cmath>

#include "brigade/base/error.h"

namespace brigade {
namespace grad_test {

using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

struct Params {
  torch::Tensor w, b;
  double scale = 2.0;
};

torch::Tensor quadratic(const Params& p, const torch::Tensor& x) {
  return p.scale * (p.w * x).square().sum() + p.b.sum();
}

torch::Tensor doubles(std::vector<double> values) { return torch::tensor(values, torch::kDouble); }

TEST(Grad, EqualsTheClosedFormForEveryLeafOfATree) {
  const Params p{doubles({1, -2, 3}), doubles({5, 6})};
  const torch::Tensor x = doubles({0.5, 4, -1});
  const auto [value, g] = value_and_grad(quadratic)(p, x);
  EXPECT_DOUBLE_EQ(value.item<double>(), 2.0 * (0.25 + 64 + 9) + 11);
  EXPECT_TRUE(torch::allclose(g.w, 4.0 * p.w * x * x));
  EXPECT_TRUE(torch::equal(g.b, torch::ones({2}, torch::kDouble)));
  EXPECT_EQ(g.scale, 0.0);
}

TEST(Grad, LeavesNoGraphBehindAndDoesNotTouchItsInputs) {
  const Params p{doubles({1, 2}), doubles({0})};
  const auto [value, g] = value_and_grad(quadratic)(p, doubles({1, 1}));
  EXPECT_FALSE(value.requires_grad());
  EXPECT_FALSE(g.w.requires_grad());
  EXPECT_FALSE(p.w.requires_grad());
  EXPECT_FALSE(p.w.grad().defined());
}

TEST(Grad, WorksWhereTheCallerHasGradModeOff) {
  const at::NoGradGuard off;
  const torch::Tensor g = grad([](const torch::Tensor& x) { return x.square().sum(); })(doubles({3}));
  EXPECT_EQ(g.item<double>(), 6);
}

TEST(Grad, LeavesNoGraphWhereTheCallerHasGradModeOffAlsoForWhatRequiresGrad) {
  const torch::Tensor w = doubles({3}).requires_grad_();
  const at::NoGradGuard off;
  const auto [value, g] =
      value_and_grad([](const torch::Tensor& x, const torch::Tensor& k) { return (x * x * k).sum(); })(w, w);
  EXPECT_FALSE(value.requires_grad());
  EXPECT_FALSE(g.requires_grad());
  EXPECT_EQ(g.item<double>(), 18);
}

TEST(Grad, NestsToHigherOrders) {
  const auto f = [](const torch::Tensor& x) { return x.pow(4).sum(); };
  const auto once = [](auto g) { return [g](const torch::Tensor& x) { return g(x).sum(); }; };
  const torch::Tensor x = doubles({3});
  EXPECT_DOUBLE_EQ(grad(f)(x).item<double>(), 4 * 27);
  EXPECT_DOUBLE_EQ(grad(once(grad(f)))(x).item<double>(), 12 * 9);
  EXPECT_DOUBLE_EQ(grad(once(grad(once(grad(f)))))(x).item<double>(), 24 * 3);
}

TEST(Grad, SeesAnOuterVariableThatAnInnerFunctionOnlyCaptures) {
  // d/dy of (d/dx x*x*y at 2) = d/dy 4y = 4
  const torch::Tensor g = grad([](const torch::Tensor& y) {
    return grad([&](const torch::Tensor& x) { return (x * x * y).sum(); })(torch::full({1}, 2.0)).sum();
  })(torch::ones({1}));
  EXPECT_EQ(g.item<float>(), 4);
}

TEST(Grad, StaysConnectedToArgumentsThatRequireGrad) {
  const torch::Tensor y = doubles({3}).requires_grad_();
  const torch::Tensor g =
      grad([](const torch::Tensor& x, const torch::Tensor& k) { return (x * x * k).sum(); })(doubles({2}), y);
  g.sum().backward();
  EXPECT_EQ(y.grad().item<double>(), 4);
}

TEST(Grad, IsZeroForALeafThatTheLossDoesNotUse) {
  const Params g = grad([](const Params& p) { return p.w.sum(); })(Params{doubles({1}), doubles({1, 2})});
  EXPECT_TRUE(torch::equal(g.b, torch::zeros({2}, torch::kDouble)));
}

TEST(Grad, PassesAuxiliaryResultsThrough) {
  const auto f = [](const torch::Tensor& x) {
    return std::pair(x.square().sum(), std::map<std::string, torch::Tensor>{{"twice", 2 * x}});
  };
  const auto [value, g] = value_and_grad(f)(doubles({3}));
  EXPECT_EQ(value.first.item<double>(), 9);
  EXPECT_EQ(value.second.at("twice").item<double>(), 6);
  EXPECT_FALSE(value.second.at("twice").requires_grad());
  EXPECT_EQ(g.item<double>(), 6);
}

TEST(Grad, RefusesWhatHasNoDerivative) {
  EXPECT_THAT([] { grad([](const torch::Tensor& x) { return 2 * x; })(torch::ones({3})); },
              ThrowsMessage<ShapeError>(AllOf(HasSubstr("returns a scalar"), HasSubstr("[3]"))));
  EXPECT_THAT([] { grad([](const torch::Tensor& x) { return x.sum().to(torch::kInt); })(torch::ones({3})); },
              ThrowsMessage<InvalidArgument>(HasSubstr("dtype Int")));
  EXPECT_THAT(
      [] {
        grad([](const Params& p) { return p.w.sum(); })(Params{torch::ones({1}), torch::ones({1}, torch::kLong)});
      },
      ThrowsMessage<InvalidArgument>(AllOf(HasSubstr("dtype Long"), HasSubstr("argument b"))));
  EXPECT_THAT(
      [] {
        grad([](const Params& p) { return p.w.sum(); })(Params{torch::ones({1}), {}});
      },
      ThrowsMessage<TreeError>(HasSubstr("argument b")));
}

}  // namespace grad_test
}  // namespace brigade
