#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include "brigade/base/error.h"
#include "brigade/tree/tree.h"

namespace brigade::tree {
namespace map_test {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

enum class Activation { kRelu, kGelu };

struct Layer {
  torch::Tensor w, b;
};

struct Net {
  std::vector<Layer> layers;
  std::map<std::string, torch::Tensor> heads;
  std::optional<torch::Tensor> scale;
  std::tuple<torch::Tensor, int> pair;
  std::array<double, 2> rates;
  std::string name;
  Activation activation;
};

torch::Tensor value(double v) { return torch::full({2}, v); }

Net net(double base, std::size_t layers = 2) {
  Net made;
  for (std::size_t i = 0; i < layers; ++i) made.layers.push_back({value(base + 1), value(base + 2)});
  made.heads = {{"left", value(base + 3)}, {"far right", value(base + 4)}};
  made.scale = value(base + 5);
  made.pair = {value(base + 6), 7};
  made.rates = {0.5, 0.25};
  made.name = "net";
  made.activation = Activation::kGelu;
  return made;
}

TEST(TreeMap, AppliesToEveryLeafOfEveryKindOfNode) {
  const Net out = map([](auto a, auto b) { return a * 10 + b; }, net(0), net(100));
  EXPECT_TRUE(torch::equal(out.layers[1].b, value(2 * 10 + 102)));
  EXPECT_TRUE(torch::equal(out.heads.at("far right"), value(4 * 10 + 104)));
  EXPECT_TRUE(torch::equal(*out.scale, value(5 * 10 + 105)));
  EXPECT_TRUE(torch::equal(std::get<0>(out.pair), value(6 * 10 + 106)));
  EXPECT_EQ(std::get<1>(out.pair), 77);
  EXPECT_EQ(out.rates[1], 2.75);
}

TEST(TreeMap, CarriesStaticValuesAndNumbersThatTheFunctionDoesNotTake) {
  const Net out = map([](const torch::Tensor& t) { return -t; }, net(0));
  EXPECT_EQ(out.name, "net");
  EXPECT_EQ(out.activation, Activation::kGelu);
  EXPECT_EQ(std::get<1>(out.pair), 7);
  EXPECT_TRUE(torch::equal(out.layers[0].w, value(-1)));
}

TEST(TreeMap, TakesTreesOfDifferentTypesWithOneStructure) {
  const Layer layer{value(1), value(2)};
  const std::pair<torch::Tensor, torch::Tensor> other{value(10), value(20)};
  const Layer out = map([](auto a, auto b) { return a + b; }, layer, other);
  EXPECT_TRUE(torch::equal(out.b, value(22)));
}

TEST(TreeMap, LeavesItsInputsAlone) {
  const Net in = net(0);
  map([](const torch::Tensor& t) { return t + 1; }, in);
  EXPECT_TRUE(torch::equal(in.layers[0].w, value(1)));
}

TEST(TreeMap, RefusesTreesWhoseLengthsDifferAndNamesThePlace) {
  const auto add = [](auto a, auto b) { return a + b; };
  EXPECT_THAT([&] { map(add, net(0, 2), net(0, 3)); },
              ThrowsMessage<TreeError>(AllOf(HasSubstr("differ at layers"), HasSubstr("2 elements, another has 3"))));
  Net other = net(0);
  other.scale.reset();
  EXPECT_THAT([&] { map(add, net(0), other); }, ThrowsMessage<TreeError>(HasSubstr("differ at scale")));
  other = net(0);
  other.heads.erase("left");
  other.heads["right"] = value(0);
  EXPECT_THAT([&] { map(add, net(0), other); },
              ThrowsMessage<TreeError>(HasSubstr("the key \"left\", another has not")));
}

TEST(TreePaths, NameFieldsKeysAndIndices) {
  EXPECT_THAT(paths(net(0, 2)), ElementsAre("layers[0].w", "layers[0].b", "layers[1].w", "layers[1].b",
                                            "heads[\"far right\"]", "heads.left", "scale", "pair[0]"));
}

TEST(TreeTraits, TellTreesFromOtherTypes) {
  static_assert(Tree<Net> && Tree<torch::Tensor> && Tree<int> && Tree<std::string>);
  static_assert(!Tree<std::unique_ptr<int>> && !Tree<std::vector<std::unique_ptr<int>>>);
  static_assert(kHasTensors<Net> && !kHasTensors<std::vector<int>> && !kHasTensors<std::string>);
}

}  // namespace map_test
}  // namespace brigade::tree
