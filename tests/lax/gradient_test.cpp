// Gradients of collectives: each is the transpose of the linear map that the whole pmap is, to any order. Values are small
// integers in float64, so everything is exact.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "brigade/brigade.h"
#include "support/nine_devices.h"

namespace brigade {
namespace gradient_test {

using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

using Body = std::function<torch::Tensor(torch::Tensor)>;

constexpr std::int64_t kDevices = 4;
const lax::AxisIndexGroups kOddAndEven = {{0, 2}, {3, 1}};
const lax::AxisIndexGroups kUneven = {{0, 1, 3}, {2}};
const lax::AxisIndexGroups kPowers = {{0}, {1, 3}, {2}};  // whose means are exact

struct Linear {
  std::string name;
  Body body;  // of a (4, 8) tensor
};

std::vector<Linear> linear_collectives() {
  std::vector<Linear> all = {
      {"psum", [](torch::Tensor t) { return lax::psum(t, "i"); }},
      {"psum in uneven groups", [](torch::Tensor t) { return lax::psum(t, "i", {kUneven}); }},
      {"pmean", [](torch::Tensor t) { return lax::pmean(t, "i"); }},
      {"pmean in groups", [](torch::Tensor t) { return lax::pmean(t, "i", {.axis_index_groups = kPowers}); }},
      {"weighted pmean",
       [](torch::Tensor t) {
         return lax::pmean(t, "i", {.weight = std::vector{1, 4, 2, 1}[static_cast<std::size_t>(lax::axis_index("i"))]});
       }},
      {"x - psum", [](torch::Tensor t) { return t - lax::psum(t, "i"); }},
      {"ppermute",
       [](torch::Tensor t) {
         return lax::ppermute(t, "i", {{0, 1}, {1, 3}, {3, 2}});
       }},
      {"ppermute in groups",
       [](torch::Tensor t) {
         return lax::ppermute(t, "i", {{1, 0}}, {kOddAndEven});
       }},
      {"pshuffle",
       [](torch::Tensor t) {
         return lax::pshuffle(t, "i", {2, 0, 1, 3});
       }},
      {"pbroadcast", [](torch::Tensor t) { return lax::pbroadcast(t, "i", 2); }},
      {"pbroadcast in groups", [](torch::Tensor t) { return lax::pbroadcast(t, "i", 0, {kUneven}); }},
      {"pswapaxes", [](torch::Tensor t) { return lax::pswapaxes(t, "i", 0); }},
  };
  for (const bool tiled : {false, true}) {
    for (const bool grouped : {false, true}) {
      const lax::AxisIndexGroups groups = grouped ? kOddAndEven : lax::AxisIndexGroups{};
      const std::string how = (tiled ? " tiled" : "") + std::string(grouped ? " in groups" : "");
      // Untiled, the scattered dimension has the size of the group.
      const auto fit = [=](const torch::Tensor& t) { return tiled || !grouped ? t : t.slice(0, 0, 2); };
      for (const std::int64_t axis : {0, -1}) {
        all.push_back({"all_gather" + how, [=](torch::Tensor t) {
                         return lax::all_gather(t, "i", {.axis = axis, .tiled = tiled, .axis_index_groups = groups});
                       }});
      }
      all.push_back({"psum_scatter" + how, [=](torch::Tensor t) {
                       return lax::psum_scatter(fit(t), "i", {.tiled = tiled, .axis_index_groups = groups});
                     }});
      all.push_back({"all_to_all" + how, [=](torch::Tensor t) {
                       return lax::all_to_all(fit(t), "i",
                                              {.split = 0, .concat = 1, .tiled = tiled, .axis_index_groups = groups});
                     }});
    }
  }
  return all;
}

torch::Tensor integers(at::IntArrayRef shape) { return torch::randint(-4, 5, shape, torch::kDouble); }

// The map of a body as seen from outside, and its transpose through the pmap's gradient.
struct Map {
  explicit Map(Body body) : f(pmap(std::move(body), {.axis_name = "i"})) {}

  torch::Tensor operator()(const torch::Tensor& x) const { return f(x).stack(); }
  torch::Tensor transposed(const torch::Tensor& y) const {
    return grad([&](const torch::Tensor& v) { return ((*this)(v)*y).sum(); })(
        torch::zeros({kDevices, 4, 8}, torch::kDouble));
  }

  Pmapped<Body> f;
};

TEST(Gradients, AreTransposesOfTheLinearMap) {
  for (const Linear& linear : linear_collectives()) {
    SCOPED_TRACE(linear.name);
    const Map map(linear.body);
    const torch::Tensor x = integers({kDevices, 4, 8});
    const torch::Tensor y = integers(map(x).sizes());
    EXPECT_EQ((map(x) * y).sum().item<double>(), (x * map.transposed(y)).sum().item<double>());
    EXPECT_TRUE(map.transposed(y).ne(0).any().item<bool>());
  }
}

// With A the map and the loss sum((A x)^3): the gradient is A'(3 (A x)^2), its derivative along v is A'(6 A x A v), and that
// one's along u is A'(6 A u A v).
TEST(Gradients, NestToThirdOrder) {
  for (const Linear& linear : linear_collectives()) {
    SCOPED_TRACE(linear.name);
    const Map map(linear.body);
    const torch::Tensor x = integers({kDevices, 4, 8}), v = integers(x.sizes()), u = integers(x.sizes());
    const auto first = grad([&](const torch::Tensor& t) { return map(t).pow(3).sum(); });
    const auto second = grad([&](const torch::Tensor& t) { return (first(t) * v).sum(); });
    const auto third = grad([&](const torch::Tensor& t) { return (second(t) * u).sum(); });
    EXPECT_TRUE(torch::equal(first(x), map.transposed(3 * map(x).square())));
    EXPECT_TRUE(torch::equal(second(x), map.transposed(6 * map(x) * map(v))));
    EXPECT_TRUE(torch::equal(third(x), map.transposed(6 * map(u) * map(v))));
  }
}

// A gradient in the body is that of the sum of all devices' losses.
TEST(Gradients, InsideTheBodyAreTheSame) {
  for (const Linear& linear : linear_collectives()) {
    SCOPED_TRACE(linear.name);
    const Map map(linear.body);
    const torch::Tensor x = integers({kDevices, 4, 8});
    const auto inside = pmap(
        [&](torch::Tensor t) { return grad([&](const torch::Tensor& w) { return linear.body(w).pow(3).sum(); })(t); },
        {.axis_name = "i"});
    EXPECT_TRUE(torch::equal(inside(x).stack(), map.transposed(3 * map(x).square())));
  }
}

// Of the gradient in the body, too: with A the map, that of sum(A'(3 (A x)^2) v) is A'(6 A x A v).
TEST(Gradients, NestInsideTheBody) {
  for (const Linear& linear : linear_collectives()) {
    SCOPED_TRACE(linear.name);
    const Map map(linear.body);
    const torch::Tensor x = integers({kDevices, 4, 8}), v = integers(x.sizes());
    const auto inside = pmap(
        [&](torch::Tensor t, torch::Tensor direction) {
          const auto first = grad([&](const torch::Tensor& w) { return linear.body(w).pow(3).sum(); });
          return grad([&](const torch::Tensor& w) { return (first(w) * direction).sum(); })(t);
        },
        {.axis_name = "i"});
    EXPECT_TRUE(torch::equal(inside(x, v).stack(), map.transposed(6 * map(x) * map(v))));
  }
}

TEST(Gradients, OfPbroadcastAreTheSumAtTheSource) {
  const torch::Tensor g = grad([](const torch::Tensor& x) {
    return pmap([](torch::Tensor t) { return lax::pbroadcast(t, "i", 0); }, {.axis_name = "i"})(x).stack().sum();
  })(torch::ones({5}));
  EXPECT_TRUE(torch::equal(g, torch::tensor({5.0F, 0.0F, 0.0F, 0.0F, 0.0F})));
}

TEST(Gradients, OfPpermuteGoBackToTheSources) {
  constexpr int kMany = 6;
  const torch::Tensor weight = M_PI + torch::arange(kMany, torch::kDouble);
  const auto gradient = [&](const lax::RankPairs& pairs) {
    return grad([&](const torch::Tensor& x) {
      return (pmap([&](torch::Tensor t) { return lax::ppermute(t, "i", pairs); }, {.axis_name = "i"})(x).stack() *
              weight)
          .sum();
    })(torch::ones({kMany}, torch::kDouble));
  };
  lax::RankPairs line, cycle;
  for (int i = 0; i < kMany; ++i) {
    if (i + 1 < kMany) line.emplace_back(i, i + 1);
    cycle.emplace_back(i, (i + 1) % kMany);
  }
  EXPECT_TRUE(torch::equal(gradient(line), torch::cat({weight.slice(0, 1), torch::zeros(1)})));
  EXPECT_TRUE(torch::equal(gradient(cycle), weight.roll(-1)));
}

// Devices use different results of one collective; the others count as zero, and nobody waits for ever.
TEST(Gradients, OfResultsThatOnlySomeDevicesUse) {
  const auto f = pmap(
      [](torch::Tensor t) {
        const auto [sum, mean] = lax::psum(std::pair(t, 2 * t), "i");
        return lax::axis_index("i") == 0 ? sum : mean;
      },
      {.axis_name = "i"});
  const torch::Tensor g = grad([&](const torch::Tensor& x) {
    return (f(x).stack() * torch::tensor({1.0, 10.0, 100.0})).sum();
  })(torch::ones({3}, torch::kDouble));
  EXPECT_TRUE(torch::equal(g, torch::full({3}, 1.0 + 20 + 200, torch::kDouble)));
}

TEST(Gradients, OfMixedTreesReachTheFloatingLeavesOnly) {
  const auto f = pmap(
      [](torch::Tensor t) {
        const auto [mean, ints] = lax::pmean(std::pair(t, torch::ones({3}, torch::kInt)), "i");
        EXPECT_TRUE(mean.requires_grad());
        EXPECT_FALSE(ints.requires_grad());
        return mean * ints.sum();
      },
      {.axis_name = "i"});
  const torch::Tensor g =
      grad([&](const torch::Tensor& x) { return f(x).stack().sum(); })(torch::ones({4}, torch::kDouble));
  EXPECT_TRUE(torch::equal(g, torch::full({4}, 3.0, torch::kDouble)));
}

TEST(Gradients, OfPmaxAndPminAreErrors) {
  const auto gradient_of = [](Body body) {
    return [body] {
      grad([&](const torch::Tensor& x) { return pmap(body, {.axis_name = "i"})(x).stack().sum(); })(torch::ones({3}));
    };
  };
  const auto refused = [](const char* text) {
    return ThrowsMessage<InvalidArgument>(AllOf(HasSubstr(text), HasSubstr("use psum or pmean"),
                                                HasSubstr("axis \"i\""), HasSubstr("gradient_test.cpp:")));
  };
  EXPECT_THAT(gradient_of([](torch::Tensor t) { return lax::pmax(t, "i"); }), refused("pmax has no gradient"));
  EXPECT_THAT(gradient_of([](torch::Tensor t) { return lax::pmin(t, "i"); }), refused("pmin has no gradient"));
}

TEST(Gradients, OfWhatOnlySomeDevicesDifferentiateAreAMismatchInForward) {
  EXPECT_THAT(
      [] {
        grad([](const torch::Tensor& x) {
          return pmap([](torch::Tensor t) { return lax::psum(lax::axis_index("i") == 0 ? t : t.detach(), "i"); },
                      {.axis_name = "i"})(x)
              .stack()
              .sum();
        })(torch::ones({2}));
      },
      ThrowsMessage<CollectiveMismatch>(
          AllOf(HasSubstr("\"psum of what requires grad\""), HasSubstr("called all_reduce \"psum\""))));
}

}  // namespace gradient_test
}  // namespace brigade
