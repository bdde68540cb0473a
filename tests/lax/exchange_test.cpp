// all_to_all, pswapaxes, ppermute, pshuffle and pbroadcast.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "brigade/brigade.h"
#include "support/nine_devices.h"

namespace brigade {
namespace exchange_test {

using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

template <class F>
auto mapped(F f) {
  return pmap(f, {.axis_name = "i"});
}

auto exchanged(const torch::Tensor& x, lax::AllToAllOptions options) {
  return mapped([options](torch::Tensor t) { return lax::all_to_all(t, "i", options); })(x);
}

auto permuted(const torch::Tensor& x, lax::RankPairs pairs) {
  return mapped([pairs](torch::Tensor t) { return lax::ppermute(t, "i", pairs); })(x);
}

// Seen from outside, the axis of devices and the split dimension change places, and the latter comes to lie at `concat`.
TEST(AllToAll, ForEveryPairOfDimensionsIsAMoveOfTheAxis) {
  for (const std::int64_t n : {1, 2, 4}) {
    const torch::Tensor x = torch::arange(n * n * n * n).reshape({n, n, n, n});
    for (std::int64_t split = 0; split < 3; ++split) {
      for (std::int64_t concat = 0; concat < 3; ++concat) {
        const torch::Tensor expected = x.movedim({0, split + 1}, {concat + 1, 0});
        EXPECT_TRUE(torch::equal(exchanged(x, {.split = split, .concat = concat}).stack(), expected))
            << n << " " << split << " " << concat;
        EXPECT_TRUE(torch::equal(exchanged(x, {.split = split - 3, .concat = concat - 3}).stack(), expected));
      }
    }
  }
}

TEST(AllToAll, TiledKeepsTheDimensions) {
  const torch::Tensor x = torch::arange(2 * 3 * 4).reshape({2, 3, 4});
  const auto out = exchanged(x, {.split = 1, .concat = 0, .tiled = true});
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(torch::equal(out[i], torch::cat({x[0].slice(1, 2 * i, 2 * i + 2), x[1].slice(1, 2 * i, 2 * i + 2)})));
  }
  EXPECT_EQ(exchanged(torch::ones({2, 0, 4}), {.split = 1, .concat = 0, .tiled = true})[0].sizes(),
            torch::IntArrayRef({0, 2}));
}

TEST(AllToAll, RefusesSizesThatDoNotFit) {
  EXPECT_THAT(
      [] {
        exchanged(torch::ones({4, 3}), {});
      },
      ThrowsMessage<ShapeError>(AllOf(HasSubstr("all_to_all along dimension 0 of a tensor of shape [3]"),
                                      HasSubstr("its size 3 is not equal to 4"))));
  EXPECT_THAT(
      [] {
        exchanged(torch::ones({4, 6}), {.tiled = true});
      },
      ThrowsMessage<ShapeError>(HasSubstr("its size 6 is not a multiple of 4")));
  EXPECT_THAT(
      [] {
        exchanged(torch::ones({4, 4}), {.concat = 1});
      },
      ThrowsMessage<ShapeError>(AllOf(HasSubstr("along dimension 1"), HasSubstr("from -1 to 0"))));
}

TEST(Pswapaxes, SwapsTheAxisOfDevicesWithADimension) {
  const torch::Tensor x = torch::arange(3 * 2 * 3).reshape({3, 2, 3});
  EXPECT_TRUE(
      torch::equal(mapped([](torch::Tensor t) { return lax::pswapaxes(t, "i", 1); })(x).stack(), x.transpose(0, 2)));
  EXPECT_THAT([&] { mapped([](torch::Tensor t) { return lax::pswapaxes(t, "i", 0); })(x); },
              ThrowsMessage<ShapeError>(HasSubstr("pswapaxes along dimension 0 of a tensor of shape [2, 3]")));
}

TEST(Ppermute, SendsEachSourceToItsDestination) {
  const torch::Tensor x = torch::tensor({0, 10, 20});
  EXPECT_TRUE(torch::equal(permuted(x, {{1, 0}, {2, 1}, {0, 2}}).stack(), torch::tensor({10, 20, 0})));
  EXPECT_TRUE(torch::equal(permuted(x, {{0, 1}, {1, 2}, {2, 0}}).stack(), x.roll(1)));
  EXPECT_TRUE(torch::equal(permuted(x, {{2, 0}}).stack(), torch::tensor({20, 0, 0})));
  EXPECT_TRUE(torch::equal(permuted(x, {}).stack(), torch::zeros({3}, torch::kLong)));
}

TEST(Ppermute, TakesTreesWithNumbersAndEveryDtype) {
  for (const auto type : {torch::kBool, torch::kByte, torch::kShort, torch::kHalf, torch::kBFloat16, torch::kDouble,
                          torch::kComplexDouble}) {
    const torch::Tensor x = torch::arange(6).reshape({3, 2}).to(type);
    EXPECT_TRUE(torch::equal(permuted(x, {{0, 1}, {1, 2}, {2, 0}}).stack(), x.roll(1, 0))) << type;
  }
  const auto out = mapped([](torch::Tensor t) {
    return lax::ppermute(std::tuple(t, lax::axis_index("i"), lax::axis_index("i") == 1), "i", {{0, 2}, {1, 0}});
  })(torch::arange(3));
  EXPECT_EQ(std::get<1>(out[0]), 1);
  EXPECT_EQ(std::get<2>(out[0]), true);
  EXPECT_EQ(std::get<1>(out[1]), 0);
}

TEST(Ppermute, RefusesRanksThatAreNotThereOrStandTwice) {
  const auto with = [](lax::RankPairs pairs) { return [pairs] { permuted(torch::ones({3}), pairs); }; };
  EXPECT_THAT(with({{0, 3}}), ThrowsMessage<InvalidArgument>(
                                  AllOf(HasSubstr("ppermute: the destination 3 is no rank, which are 0 to 2"),
                                        HasSubstr("axis \"i\""), HasSubstr("exchange_test.cpp:"))));
  EXPECT_THAT(with({{-1, 0}}), ThrowsMessage<InvalidArgument>(HasSubstr("the source -1 is no rank")));
  EXPECT_THAT(with({{0, 1}, {2, 1}}), ThrowsMessage<InvalidArgument>(HasSubstr("1 is the destination of two pairs")));
  EXPECT_THAT(with({{0, 1}, {0, 2}}), ThrowsMessage<InvalidArgument>(HasSubstr("0 is the source of two pairs")));
}

TEST(Pshuffle, TakesFromTheSourceThatIsNamed) {
  const torch::Tensor x = torch::tensor({0, 10, 20, 30});
  EXPECT_TRUE(torch::equal(mapped([](torch::Tensor t) {
                             return lax::pshuffle(t, "i", {2, 0, 3, 1});
                           })(x)
                               .stack(),
                           torch::tensor({20, 0, 30, 10})));
  const auto with = [&](std::vector<int> perm) {
    return [&x, perm] { mapped([&](torch::Tensor t) { return lax::pshuffle(t, "i", perm); })(x); };
  };
  EXPECT_THAT(with({0, 1}), ThrowsMessage<InvalidArgument>(HasSubstr("pshuffle by [0, 1], which has 2 entries for 4")));
  EXPECT_THAT(with({0, 1, 1, 2}), ThrowsMessage<InvalidArgument>(HasSubstr("1 is the source of two pairs")));
}

TEST(Pbroadcast, GivesEveryoneTheValueOfTheSource) {
  const torch::Tensor x = torch::arange(6, torch::kFloat).reshape({3, 2});
  const auto out =
      mapped([](torch::Tensor t) { return lax::pbroadcast(std::pair(t, lax::axis_index("i")), "i", 1); })(x);
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(torch::equal(out[i].first, x[1]));
    EXPECT_EQ(out[i].second, 1);
  }
  EXPECT_THAT([&] { mapped([](torch::Tensor t) { return lax::pbroadcast(t, "i", 3); })(x); },
              ThrowsMessage<InvalidArgument>(HasSubstr("pbroadcast: the source 3 is no rank, which are 0 to 2")));
}

// Rule 30: a cell becomes left XOR (middle OR right).
torch::Tensor rule_30(const torch::Tensor& padded) {
  const std::int64_t width = padded.size(0) - 2;
  const auto from = [&](std::int64_t start) { return padded.slice(0, start, start + width); };
  return from(0).logical_xor(from(1).logical_or(from(2)));
}

TEST(Ppermute, ExchangesTheHalosOfACellularAutomaton) {
  constexpr std::int64_t kDevices = 8, kCells = 5;
  torch::Tensor whole = torch::zeros({kDevices * kCells}, torch::kBool);
  whole[kDevices * kCells / 2] = true;
  lax::RankPairs to_right, to_left;
  for (int i = 0; i < kDevices; ++i) {
    to_right.emplace_back(i, (i + 1) % kDevices);
    to_left.emplace_back((i + 1) % kDevices, i);
  }
  const auto step = mapped([&](torch::Tensor cells) {
    const torch::Tensor left = lax::ppermute(cells.slice(0, kCells - 1, kCells), "i", to_right);
    const torch::Tensor right = lax::ppermute(cells.slice(0, 0, 1), "i", to_left);
    return rule_30(torch::cat({left, cells, right}));
  });
  Sharded<torch::Tensor> cells = step(whole.reshape({kDevices, kCells}));
  for (int k = 1; k < 9; ++k) cells = step(cells);
  for (int k = 0; k < 9; ++k) whole = rule_30(torch::cat({whole.slice(0, -1), whole, whole.slice(0, 0, 1)}));
  EXPECT_TRUE(torch::equal(cells.stack().flatten(), whole));
  EXPECT_GT(whole.sum().item<int>(), 5);
}

TEST(Exchanges, WithDifferentArgumentsOnDifferentDevicesAreAMismatch) {
  EXPECT_THAT(
      [] {
        mapped([](torch::Tensor t) { return lax::pbroadcast(t, "i", static_cast<int>(lax::axis_index("i"))); })(
            torch::ones({2, 2}));
      },
      ThrowsMessage<CollectiveMismatch>(HasSubstr("root")));
  EXPECT_THAT(
      [] {
        mapped([](torch::Tensor t) {
          return lax::ppermute(t, "i", lax::axis_index("i") == 0 ? lax::RankPairs{{0, 1}} : lax::RankPairs{{1, 0}});
        })(torch::ones({2, 2}));
      },
      ThrowsMessage<CollectiveMismatch>(HasSubstr("(1, 0)")));
  EXPECT_THAT(
      [] {
        mapped([](torch::Tensor t) { return lax::all_to_all(t, "i", {.split = lax::axis_index("i")}); })(
            torch::ones({2, 2, 2}));
      },
      ThrowsMessage<CollectiveMismatch>(HasSubstr("all_to_all(split 1, concat 0)")));
}

}  // namespace exchange_test
}  // namespace brigade
