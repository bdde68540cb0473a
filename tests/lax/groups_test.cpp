// axis_index_groups: a collective runs in each group by itself.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "brigade/brigade.h"
#include "support/nine_devices.h"
#include "support/tree_sum.h"

namespace brigade {
namespace groups_test {

using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

const lax::AxisIndexGroups kOddAndEven = {{0, 2}, {1, 3}};
const lax::AxisIndexGroups kUneven = {{0, 1}, {2, 3, 4, 5, 6}};

template <class F>
auto mapped(F f) {
  return pmap(f, {.axis_name = "i"});
}

TEST(Groups, ReduceEachByItself) {
  const torch::Tensor x = torch::tensor({1, 20, 300, 4000});
  const auto f = mapped([](torch::Tensor t) {
    return std::tuple(lax::psum(t, "i", {kOddAndEven}), lax::pmax(t, "i", {kOddAndEven}),
                      lax::pmin(t, "i", {.axis_index_groups = kOddAndEven}), lax::psum(t, "i"));
  })(x);
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(std::get<0>(f[i]).item<int>(), i % 2 == 0 ? 301 : 4020);
    EXPECT_EQ(std::get<1>(f[i]).item<int>(), i % 2 == 0 ? 300 : 4000);
    EXPECT_EQ(std::get<2>(f[i]).item<int>(), i % 2 == 0 ? 1 : 20);
    EXPECT_EQ(std::get<3>(f[i]).item<int>(), 4321);
  }
}

TEST(Groups, MayBeUnevenAndAMeanDividesByItsOwnSize) {
  const torch::Tensor x = torch::randn({7, 3});
  const auto f = mapped([](torch::Tensor t) {
    return std::pair(lax::psum(t, "i", {kUneven}), lax::pmean(t, "i", {.axis_index_groups = kUneven}));
  })(x);
  for (const std::vector<int>& group : kUneven) {
    std::vector<torch::Tensor> rows;
    for (const int i : group) rows.push_back(x[i]);
    for (const int i : group) {
      EXPECT_TRUE(torch::equal(f[i].first, tree_sum(rows)));
      EXPECT_TRUE(torch::equal(f[i].second, tree_sum(rows) / static_cast<float>(group.size())));
    }
  }
}

TEST(Groups, CountRanksInTheOrderInWhichTheyListThem) {
  const lax::AxisIndexGroups groups = {{3, 0, 1}, {2}};
  const torch::Tensor x = torch::randn({4, 50});
  const auto f = mapped([&](torch::Tensor t) {
    return std::tuple(lax::psum(t, "i", {groups}), lax::pbroadcast(t, "i", 0, {groups}), lax::axis_index("i"));
  })(x);
  EXPECT_TRUE(torch::equal(std::get<0>(f[1]), (x[3] + x[0]) + x[1]));
  EXPECT_TRUE(torch::equal(std::get<1>(f[1]), x[3]));
  EXPECT_TRUE(torch::equal(std::get<0>(f[2]), x[2]));
  EXPECT_EQ(std::get<2>(f[1]), 1);
}

TEST(Groups, OfPargmaxGiveTheIndexAlongTheAxis) {
  const auto f = mapped([](torch::Tensor t) {
    return std::pair(lax::pargmax(t, "i", {kOddAndEven}), lax::pargmin(t, "i", {{{3, 2}, {1, 0}}}));
  })(torch::tensor({5, 7, 5, 9}));
  EXPECT_EQ(f[0].first.item<int>(), 0);  // of 0 and 2, which tie
  EXPECT_EQ(f[1].first.item<int>(), 3);
  EXPECT_EQ(f[3].second.item<int>(), 2);
}

TEST(Groups, GatherScatterAndExchange) {
  const torch::Tensor x = torch::arange(8).reshape({4, 2});
  const auto f = mapped([](torch::Tensor t) {
    return std::tuple(lax::all_gather(t, "i", {.tiled = true, .axis_index_groups = kOddAndEven}),
                      lax::psum_scatter(t, "i", {.tiled = true, .axis_index_groups = kOddAndEven}),
                      lax::all_to_all(t, "i", {.axis_index_groups = kOddAndEven}),
                      lax::pswapaxes(t, "i", 0, {kOddAndEven}));
  })(x);
  EXPECT_TRUE(torch::equal(std::get<0>(f[2]), torch::tensor({0, 1, 4, 5})));
  EXPECT_TRUE(torch::equal(std::get<1>(f[3]), torch::tensor({3 + 7})));
  const torch::Tensor swapped = torch::tensor({0, 4, 2, 6, 1, 5, 3, 7}).reshape({4, 2});
  for (int i = 0; i < 4; ++i) {
    EXPECT_TRUE(torch::equal(std::get<2>(f[i]), swapped[i]));
    EXPECT_TRUE(torch::equal(std::get<3>(f[i]), swapped[i]));
  }
}

TEST(Groups, PermuteWithinEachGroup) {
  const auto f = mapped([](torch::Tensor t) {
    return std::pair(lax::ppermute(t, "i", {{0, 1}}, {kOddAndEven}), lax::pshuffle(t, "i", {1, 0}, {kOddAndEven}));
  })(torch::tensor({1, 2, 3, 4}));
  const std::vector<int> permuted = {0, 0, 1, 2}, shuffled = {3, 4, 1, 2};
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(f[i].first.item<int>(), permuted[static_cast<std::size_t>(i)]);
    EXPECT_EQ(f[i].second.item<int>(), shuffled[static_cast<std::size_t>(i)]);
  }
}

TEST(Groups, ThatAreNoPartitionOfTheRanksAreErrors) {
  const auto with = [](lax::AxisIndexGroups groups) {
    return [groups] { mapped([&](torch::Tensor t) { return lax::psum(t, "i", {groups}); })(torch::ones({4})); };
  };
  EXPECT_THAT(with({{0, 1}, {2, 4}}),
              ThrowsMessage<InvalidArgument>(
                  AllOf(HasSubstr("axis_index_groups of psum name rank 4, and the axis has ranks 0 to 3"),
                        HasSubstr("axis \"i\""), HasSubstr("groups_test.cpp:"))));
  EXPECT_THAT(with({{0, -1}, {2, 3}}), ThrowsMessage<InvalidArgument>(HasSubstr("name rank -1")));
  EXPECT_THAT(with({{0, 1}, {1, 2, 3}}), ThrowsMessage<InvalidArgument>(HasSubstr("name rank 1 twice")));
  EXPECT_THAT(with({{0, 1}, {3}}), ThrowsMessage<InvalidArgument>(HasSubstr("leave out rank 2")));
}

TEST(Groups, OfDifferentSizesAreAnErrorWhereShapesDependOnThem) {
  const auto with = [](auto collective) { return [collective] { mapped(collective)(torch::ones({7, 7})); }; };
  const auto refused = [](const char* name) {
    return ThrowsMessage<InvalidArgument>(AllOf(HasSubstr(std::string("axis_index_groups of ") + name),
                                                HasSubstr("sizes 2 and 5"),
                                                HasSubstr("make all groups equally large")));
  };
  EXPECT_THAT(with([](torch::Tensor t) { return lax::all_gather(t, "i", {.axis_index_groups = kUneven}); }),
              refused("all_gather"));
  EXPECT_THAT(with([](torch::Tensor t) { return lax::psum_scatter(t, "i", {.axis_index_groups = kUneven}); }),
              refused("psum_scatter"));
  EXPECT_THAT(with([](torch::Tensor t) { return lax::all_to_all(t, "i", {.axis_index_groups = kUneven}); }),
              refused("all_to_all"));
  EXPECT_THAT(with([](torch::Tensor t) { return lax::pswapaxes(t, "i", 0, {kUneven}); }), refused("pswapaxes"));
}

TEST(Groups, ThatDifferAmongDevicesAreAMismatchAndNoHang) {
  // Each waits for the next, and the last for the first.
  const std::vector<lax::AxisIndexGroups> groups = {{{0, 1}, {2}}, {{1, 2}, {0}}, {{2, 0}, {1}}};
  const auto sum_in_own = [&](torch::Tensor t) {
    return lax::psum(t, "i", {groups[static_cast<std::size_t>(lax::axis_index("i"))]});
  };
  EXPECT_THAT([&] { mapped(sum_in_own)(torch::ones({3})); },
              ThrowsMessage<CollectiveMismatch>(AllOf(HasSubstr("psum"), HasSubstr("groups_test.cpp:"))));
}

TEST(Groups, MeetMoreOftenInOneThanInAnother) {
  const auto f = mapped([](torch::Tensor t) {
    const bool first = lax::axis_index("i") < 2;
    for (int k = 0; k < (first ? 50 : 7); ++k) t = lax::pmean(t, "i", {.axis_index_groups = kUneven});
    return lax::psum(t, "i");
  })(torch::ones({7}));
  EXPECT_EQ(f[6].item<float>(), 7.0F);
}

}  // namespace groups_test
}  // namespace brigade
