// all_gather and psum_scatter.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "brigade/brigade.h"
#include "support/nine_devices.h"
#include "support/tree_sum.h"

namespace brigade {
namespace gather_test {

using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

template <class F>
auto mapped(F f) {
  return pmap(f, {.axis_name = "i"});
}

auto gathered(const torch::Tensor& x, lax::AllGatherOptions options) {
  return mapped([options](torch::Tensor t) { return lax::all_gather(t, "i", options); })(x);
}

auto scattered(const torch::Tensor& x, lax::PsumScatterOptions options) {
  return mapped([options](torch::Tensor t) { return lax::psum_scatter(t, "i", options); })(x);
}

TEST(AllGather, PutsTheNewDimensionWhereAskedOrConcatenates) {
  const torch::Tensor x = torch::arange(24, torch::kFloat).reshape({4, 3, 2});
  EXPECT_TRUE(torch::equal(gathered(x, {})[2], x));
  EXPECT_TRUE(torch::equal(gathered(x, {.axis = 1})[0], x.movedim(0, 1)));
  EXPECT_TRUE(torch::equal(gathered(x, {.axis = -1})[2], x.movedim(0, -1)));
  EXPECT_TRUE(torch::equal(gathered(x, {.tiled = true})[3], x.reshape({12, 2})));
  EXPECT_TRUE(torch::equal(gathered(x, {.axis = -1, .tiled = true})[1], torch::cat({x[0], x[1], x[2], x[3]}, -1)));
}

TEST(AllGather, KeepsBoolAndTakesScalarsViewsAndEmptyTensors) {
  const torch::Tensor b = torch::tensor({true, false});
  EXPECT_TRUE(torch::equal(gathered(b, {})[1], b));
  const torch::Tensor t = torch::arange(24).reshape({2, 3, 4}).transpose(1, 2);
  EXPECT_TRUE(torch::equal(gathered(t, {.axis = 1})[1], t.movedim(0, 1)));
  EXPECT_EQ(gathered(torch::ones({3, 0, 2}), {.axis = 1, .tiled = true})[0].sizes(), torch::IntArrayRef({0, 6}));
}

TEST(AllGather, GivesTensorsThatAreNoViewsAndMayBeChanged) {
  const torch::Tensor x = torch::arange(6, torch::kFloat).reshape({3, 2});
  const auto out = mapped([](torch::Tensor t) {
    std::vector<torch::Tensor> rows;
    for (const std::int64_t axis : {0, 1}) {
      rows.push_back(lax::all_gather(t, "i", {.axis = axis}));
      EXPECT_FALSE(rows.back().is_view());
      EXPECT_TRUE(rows.back().is_contiguous());
      rows.back().mul_(2);
    }
    return rows;
  })(x.clone().requires_grad_());
  EXPECT_TRUE(torch::equal(out[1][0], 2 * x));
  EXPECT_TRUE(torch::equal(out[1][1], 2 * x.t()));
}

TEST(PsumScatter, GivesEveryDeviceItsSlice) {
  const torch::Tensor x = torch::arange(16, torch::kFloat).reshape({4, 4});
  EXPECT_TRUE(torch::equal(scattered(x, {}).stack(), x.sum(0)));
  const torch::Tensor wide = torch::randint(-9, 9, {4, 16}).to(torch::kFloat);
  EXPECT_TRUE(torch::equal(scattered(wide, {.tiled = true}).stack(), wide.sum(0).reshape({4, 4})));
}

TEST(PsumScatter, TakesNegativeDimensionsLikePositiveOnes) {
  const torch::Tensor x = torch::randint(-9, 9, {4, 3, 4, 8}).to(torch::kFloat);
  for (const bool tiled : {false, true}) {
    EXPECT_TRUE(torch::equal(scattered(x, {.dim = 1, .tiled = tiled}).stack(),
                             scattered(x, {.dim = -2, .tiled = tiled}).stack()));
  }
  EXPECT_TRUE(torch::equal(scattered(x, {.dim = -2}).stack(), x.sum(0).movedim(1, 0)));
  EXPECT_TRUE(torch::equal(scattered(x, {.dim = -1, .tiled = true})[3], x.sum(0).slice(2, 6, 8)));
}

TEST(PsumScatter, AddsInTheDocumentedTreeWithTheDtypesOfPsum) {
  for (std::int64_t n = 1; n <= 9; ++n) {
    const torch::Tensor x = torch::randn({n, 5, 2 * n});
    const std::vector<torch::Tensor> rows = x.unbind(0);
    const torch::Tensor sum = tree_sum(rows);
    const auto out = scattered(x, {.dim = 1, .tiled = true});
    for (std::int64_t i = 0; i < n; ++i) EXPECT_TRUE(torch::equal(out[i], sum.slice(1, 2 * i, 2 * i + 2)));
  }
  const torch::Tensor b = torch::ones({3, 3}, torch::kBool);
  EXPECT_TRUE(torch::equal(scattered(b, {})[1], torch::tensor(3, torch::kInt)));
  const torch::Tensor z = torch::complex(torch::ones({2, 2}), torch::arange(4, torch::kFloat).reshape({2, 2}));
  EXPECT_TRUE(torch::equal(scattered(z, {}).stack(), z.sum(0)));
}

TEST(Gathers, TakeTreesInOneMeeting) {
  const auto out = mapped([](torch::Tensor t) {
    std::map<std::string, torch::Tensor> tree = {{"float", t}, {"long", t.to(torch::kLong)}, {"bool", t > 3}};
    const comm::Group& group = find_axis("i", std::source_location::current()).group();
    const std::int64_t before = group.statistics().calls;
    tree = lax::psum_scatter(lax::all_gather(tree, "i"), "i");
    EXPECT_EQ(group.statistics().calls, before + 2);
    return tree;
  })(torch::arange(8, torch::kFloat).reshape({4, 2}));
  EXPECT_TRUE(torch::equal(out[1].at("float"), torch::tensor({8.0F, 12.0F})));
  EXPECT_TRUE(torch::equal(out[1].at("long"), torch::tensor({8, 12})));
  EXPECT_TRUE(torch::equal(out[2].at("bool"), torch::tensor({4, 4}, torch::kInt)));
}

TEST(AllGather, RefusesADimensionThatIsNotThereAndNamesTheLeaf) {
  EXPECT_THAT(
      [] {
        gathered(torch::ones({2, 2}), {.axis = 3});
      },
      ThrowsMessage<ShapeError>(AllOf(HasSubstr("all_gather along dimension 3 of a tensor of shape [2]"),
                                      HasSubstr("the dimension is from -2 to 1"))));
  EXPECT_THAT([] { gathered(torch::ones({2}), {.tiled = true}); },
              ThrowsMessage<ShapeError>(HasSubstr("of a tensor of shape [], tiled: a scalar has none")));
  EXPECT_THAT(
      [] {
        mapped([](torch::Tensor t) { return lax::all_gather(std::pair(t, t[0]), "i", {.axis = 1}); })(
            torch::ones({2, 2}));
      },
      ThrowsMessage<ShapeError>(AllOf(HasSubstr("from -1 to 0"), HasSubstr("argument [1]"), HasSubstr("device "),
                                      HasSubstr("gather_test.cpp:"))));
}

TEST(PsumScatter, RefusesSizesThatDoNotFit) {
  EXPECT_THAT(
      [] {
        scattered(torch::ones({2, 3}), {});
      },
      ThrowsMessage<ShapeError>(AllOf(HasSubstr("psum_scatter along dimension 0 of a tensor of shape [3]"),
                                      HasSubstr("its size 3 is not equal to 2, the number of devices"))));
  EXPECT_THAT(
      [] {
        scattered(torch::ones({2, 4}), {});
      },
      ThrowsMessage<ShapeError>(HasSubstr(".tiled takes multiples of it")));
  EXPECT_THAT(
      [] {
        scattered(torch::ones({2, 4, 3}), {.dim = 1, .tiled = true});
      },
      ThrowsMessage<ShapeError>(HasSubstr("its size 3 is not a multiple of 2")));
  EXPECT_THAT(
      [] {
        scattered(torch::ones({2, 4}), {.dim = 1});
      },
      ThrowsMessage<ShapeError>(HasSubstr("the dimension is from -1 to 0")));
}

TEST(Gathers, AlongDifferentDimensionsOnDifferentDevicesAreAMismatch) {
  EXPECT_THAT(
      [] {
        mapped([](torch::Tensor t) { return lax::all_gather(t, "i", {.axis = lax::axis_index("i")}); })(
            torch::ones({2, 2}));
      },
      ThrowsMessage<CollectiveMismatch>(AllOf(HasSubstr("\"all_gather\""), HasSubstr("\"all_gather(dim 1)\""))));
  EXPECT_THAT(
      [] {
        mapped([](torch::Tensor t) { return lax::psum_scatter(t, "i", {.tiled = lax::axis_index("i") == 1}); })(
            torch::ones({2, 2}));
      },
      ThrowsMessage<CollectiveMismatch>(HasSubstr("\"psum_scatter(tiled)\"")));
}

}  // namespace gather_test
}  // namespace brigade
