// Collectives over the named axes of a mesh: Mesh{{"host", 2}, {"device", 3}}, where device d of 6 stands at host d / 3 and
// device d % 3.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "brigade/brigade.h"
#include "support/nine_devices.h"

namespace brigade {
namespace mesh_test {

using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

template <class F>
auto meshed(F f) {
  return pmap(f, {.mesh = Mesh{{"host", 2}, {"device", 3}}});
}

const torch::Tensor kRows = torch::tensor({1, 20, 300, 4000, 50000, 600000});

TEST(MeshCollectives, RunAmongTheDevicesThatShareThePlaceOnTheOtherAxes) {
  const auto f = meshed([](torch::Tensor t) {
    return std::tuple(lax::psum(t, "device"), lax::psum(t, "host"), lax::psum(t, {"host", "device"}));
  })(kRows);
  const torch::Tensor grid = kRows.reshape({2, 3});
  for (int d = 0; d < 6; ++d) {
    EXPECT_TRUE(torch::equal(std::get<0>(f[d]), grid[d / 3].sum()));
    EXPECT_TRUE(torch::equal(std::get<1>(f[d]), grid.sum(0)[d % 3]));
    EXPECT_TRUE(torch::equal(std::get<2>(f[d]), grid.sum()));
  }
}

TEST(MeshCollectives, CountIndicesRowMajorInTheOrderOfTheNames) {
  const auto f = meshed([](torch::Tensor) {
    return std::tuple(lax::axis_index("host"), lax::axis_index("device"), lax::axis_index({"host", "device"}),
                      lax::axis_index({"device", "host"}));
  })(kRows);
  for (int d = 0; d < 6; ++d) {
    const int host = d / 3, device = d % 3;
    EXPECT_EQ(f[d], std::tuple(host, device, 3 * host + device, 2 * device + host));
  }
  const auto sizes = meshed([](torch::Tensor) {
    return std::tuple(lax::axis_size("host"), lax::axis_size("device"), lax::axis_size({"device", "host"}));
  })(kRows);
  EXPECT_EQ(sizes[5], std::tuple(2, 3, 6));
}

TEST(MeshCollectives, GatherInTheOrderOfTheNames) {
  const auto f = meshed([](torch::Tensor t) {
    return std::pair(lax::all_gather(t, {"host", "device"}), lax::all_gather(t, {"device", "host"}));
  })(kRows);
  for (int d = 0; d < 6; ++d) {
    EXPECT_TRUE(torch::equal(f[d].first, kRows));
    EXPECT_TRUE(torch::equal(f[d].second, kRows.reshape({2, 3}).t().flatten()));
  }
}

TEST(MeshCollectives, TakeGroupsOfRanksOnTheNamedAxes) {
  const auto f = meshed([](torch::Tensor t) {
    return std::pair(lax::psum(t, "device", {.axis_index_groups = {{0, 2}, {1}}}),
                     lax::psum(t, {"device", "host"}, {.axis_index_groups = {{0, 1, 2}, {3, 4, 5}}}));
  })(kRows);
  EXPECT_EQ(f[0].first.item<int>(), 301);
  EXPECT_EQ(f[1].first.item<int>(), 20);
  EXPECT_EQ(f[5].first.item<int>(), 604000);
  // Ranks 0, 1, 2 over (device, host) are devices 0, 3 and 1.
  EXPECT_EQ(f[3].second.item<int>(), 4021);
  EXPECT_EQ(f[2].second.item<int>(), 650300);
}

TEST(MeshCollectives, PermuteBroadcastAndExchangeAlongOneAxis) {
  const auto f = meshed([](torch::Tensor t) {
    return std::tuple(lax::ppermute(t, "device", {{0, 1}, {1, 2}, {2, 0}}), lax::pbroadcast(t, "host", 1),
                      lax::all_to_all(t * torch::tensor({1, 2}), "host"), lax::pargmax(t, "device"));
  })(kRows);
  const torch::Tensor grid = kRows.reshape({2, 3});
  for (int d = 0; d < 6; ++d) {
    EXPECT_TRUE(torch::equal(std::get<0>(f[d]), grid.roll(1, 1)[d / 3][d % 3]));
    EXPECT_TRUE(torch::equal(std::get<1>(f[d]), grid[1][d % 3]));
    EXPECT_TRUE(torch::equal(std::get<2>(f[d]), grid.select(1, d % 3) * (1 + d / 3)));
    EXPECT_EQ(std::get<3>(f[d]).item<int>(), 2);
  }
}

TEST(MeshCollectives, TakeTurnsAmongAxesAndHaveGradients) {
  const auto f = meshed([](torch::Tensor t) {
    return lax::pmax(lax::psum(lax::psum(t, "device"), "host").detach(), "host") + lax::pmean(t * t, "device");
  });
  const torch::Tensor x = kRows.to(torch::kDouble);
  const torch::Tensor g = grad([&](const torch::Tensor& v) { return (f(v).stack() * torch::arange(6)).sum(); })(x);
  const torch::Tensor weight = torch::tensor({3.0, 12.0}).repeat_interleave(3);  // of the cotangents 0+1+2 and 3+4+5
  EXPECT_TRUE(torch::allclose(g, 2 * x * weight / 3, 1e-14));
}

// With s the sums over "device" and the loss sum((s + x)^3) on the devices of a host: its gradient is 3 (y + sum of y) with
// y = (s + x)^2, and the derivative of that along v is 6 (z + sum of z) with z = (s + x) (sum of v + v).
TEST(MeshCollectives, HaveGradientsOfSecondOrder) {
  const auto f = meshed([](torch::Tensor t) { return lax::psum(t, "device") + t; });
  const torch::Tensor x = torch::randint(-4, 5, {6}, torch::kDouble), v = torch::randint(-4, 5, {6}, torch::kDouble);
  const auto first = grad([&](const torch::Tensor& t) { return f(t).stack().pow(3).sum(); });
  const auto second = grad([&](const torch::Tensor& t) { return (first(t) * v).sum(); });
  const auto plus_sum = [](const torch::Tensor& t) {
    const torch::Tensor grid = t.reshape({2, 3});
    return (grid + grid.sum(1, /*keepdim=*/true)).flatten();
  };
  EXPECT_TRUE(torch::equal(first(x), 3 * plus_sum(plus_sum(x).square())));
  EXPECT_TRUE(torch::equal(second(x), 6 * plus_sum(plus_sum(x) * plus_sum(v))));

  // Every device gets all values, so the loss is 6 sum(x^3).
  const auto gathered = meshed([](torch::Tensor t) { return lax::all_gather(t, {"device", "host"}); });
  const auto slope = grad([&](const torch::Tensor& t) { return gathered(t).stack().pow(3).sum(); });
  const auto curvature = grad([&](const torch::Tensor& t) { return (slope(t) * v).sum(); });
  EXPECT_TRUE(torch::equal(slope(x), 18 * x.square()));
  EXPECT_TRUE(torch::equal(curvature(x), 36 * x * v));
}

TEST(MeshCollectives, OfThreeAxesOverTwoThatAreNotNeighbours) {
  const auto f = pmap(
      [](torch::Tensor t) {
        return lax::all_gather(t, {"c", "a"});
      },
      {.mesh = Mesh{{"a", 2}, {"b", 2}, {"c", 2}}});
  const torch::Tensor grid = torch::arange(8).reshape({2, 2, 2});
  const auto out = f(torch::arange(8));
  for (int d = 0; d < 8; ++d) EXPECT_TRUE(torch::equal(out[d], grid.select(1, d / 2 % 2).t().flatten()));
}

TEST(MeshCollectives, TakeNamesOfEveryStringType) {
  const auto f = meshed([](torch::Tensor t) {
    const std::string host = "host";
    const std::vector<std::string> both = {"host", "device"};
    return std::tuple(lax::psum(t, host), lax::psum(t, std::string_view(host)), lax::psum(t, {host, "device"}),
                      lax::psum(t, both));
  })(kRows);
  EXPECT_EQ(std::get<0>(f[0]).item<int>(), 4001);
  EXPECT_EQ(std::get<1>(f[0]).item<int>(), 4001);
  EXPECT_EQ(std::get<2>(f[0]).item<int>(), 654321);
  EXPECT_EQ(std::get<3>(f[0]).item<int>(), 654321);
}

TEST(MeshErrors, ListTheNamesInScope) {
  EXPECT_THAT([] { meshed([](torch::Tensor t) { return lax::psum(t, "devices"); })(kRows); },
              ThrowsMessage<AxisError>(
                  AllOf(HasSubstr("axis \"devices\" is not in scope here: in scope are \"host\" and \"device\""),
                        HasSubstr("was \"device\" meant?"), HasSubstr("mesh_test.cpp:"))));
  EXPECT_THAT([] { meshed([](torch::Tensor t) {
                     return lax::psum(t, {"host", "i"});
                   })(kRows); },
              ThrowsMessage<AxisError>(HasSubstr("axis \"i\" is not in scope here")));
  EXPECT_THAT([] { meshed([](torch::Tensor t) {
                     return lax::psum(t, {"host", "host"});
                   })(kRows); },
              ThrowsMessage<InvalidArgument>(HasSubstr("axis \"host\" stands twice among the axes of a collective")));
  EXPECT_THAT([] { meshed([](torch::Tensor t) { return lax::psum(t, {}); })(kRows); },
              ThrowsMessage<InvalidArgument>(HasSubstr("a collective over no axis")));
  EXPECT_THAT(
      [] {
        lax::psum(kRows, {"host", "device"});
      },
      ThrowsMessage<AxisError>(HasSubstr("axis \"host, device\" is not in scope")));
}

TEST(MeshErrors, NameTheAxesOfTheCollective) {
  EXPECT_THAT(
      [] {
        meshed([](torch::Tensor t) { return lax::psum_scatter(t, {"device", "host"}); })(torch::ones({6, 4}));
      },
      ThrowsMessage<ShapeError>(AllOf(HasSubstr("is not equal to 6"), HasSubstr("axis \"device, host\""))));
}

TEST(MeshErrors, OfAPmapWhoseOptionsDisagree) {
  const auto f = [](torch::Tensor t) { return t; };
  EXPECT_THAT(
      [&] {
        pmap(f, {.axis_name = "i", .mesh = Mesh{{"a", 2}}});
      },
      ThrowsMessage<InvalidArgument>(
          AllOf(HasSubstr("leave out axis_name and axis_size"), HasSubstr("axis \"a\""), HasSubstr("mesh_test.cpp:"))));
  EXPECT_THAT(
      [&] {
        pmap(f, {.mesh = Mesh{{"a", 2}}, .axis_size = 2});
      },
      ThrowsMessage<InvalidArgument>(HasSubstr("leave out axis_name and axis_size")));
  EXPECT_THAT(
      [&] { meshed(f)(torch::ones({4})); },
      ThrowsMessage<ShapeError>(AllOf(HasSubstr("size 6 (the size of the mesh)"), HasSubstr("[0]: shape [4]"))));
  EXPECT_THAT(
      [&] {
        pmap(f, {.mesh = Mesh{{"a", 5}, {"b", 2}}})(torch::ones({10}));
      },
      ThrowsMessage<InvalidArgument>(HasSubstr("the axis has size 10 and there are 9 devices")));
  EXPECT_THAT(
      [&] {
        pmap(f, {.mesh = Mesh{{"a", 2}}, .devices = {{devices()[0]}}})(torch::ones({2}));
      },
      ThrowsMessage<InvalidArgument>(HasSubstr("the size of the mesh is 2 and `devices` names 1")));
}

}  // namespace mesh_test
}  // namespace brigade
