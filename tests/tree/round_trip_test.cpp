// Round trips of trees drawn at random.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <torch/types.h>

#include "brigade/base/error.h"
#include "brigade/tree/tree.h"

namespace brigade::tree {
namespace round_trip_test {

struct Block {
  torch::Tensor w;
  std::optional<torch::Tensor> bias;
  std::vector<std::map<std::string, torch::Tensor>> tables;
  int64_t repeat;
};

struct Model {
  std::vector<Block> blocks;
  std::pair<torch::Tensor, std::array<torch::Tensor, 2>> ends;
};

torch::Tensor draw() { return torch::tensor(*rc::gen::arbitrary<float>()); }

Model draw_model() {
  Model model;
  model.blocks.resize(*rc::gen::inRange(0, 4));
  for (Block& block : model.blocks) {
    block.w = draw();
    if (*rc::gen::arbitrary<bool>()) block.bias = draw();
    block.tables.resize(*rc::gen::inRange(0, 3));
    for (auto& table : block.tables) {
      for (const auto& key : *rc::gen::container<std::vector<std::string>>(rc::gen::arbitrary<std::string>()))
        table[key] = draw();
    }
    block.repeat = *rc::gen::arbitrary<int64_t>();
  }
  model.ends = {draw(), {draw(), draw()}};
  return model;
}

// A count by hand, to hold against flatten.
std::size_t count_tensors(const Model& model) {
  std::size_t count = 3;
  for (const Block& block : model.blocks) {
    count += 1 + block.bias.has_value();
    for (const auto& table : block.tables) count += table.size();
  }
  return count;
}

void check(const std::function<void()>& property) { ASSERT_TRUE(rc::check(property)); }

TEST(TreeRoundTrip, FlattenGivesEveryTensorOnceAndUnflattenPutsItBack) {
  check([] {
    const Model model = draw_model();
    const auto flat = flatten(model);
    RC_ASSERT(flat.size() == count_tensors(model));
    RC_ASSERT(paths(model).size() == flat.size());
    const auto again = flatten(unflatten(model, flat));
    for (std::size_t i = 0; i < flat.size(); ++i) RC_ASSERT(again[i].is_same(flat[i]));
  });
}

TEST(TreeRoundTrip, UnflattenReplacesTensorsAndKeepsNumbers) {
  check([] {
    const Model model = draw_model();
    auto flat = flatten(model);
    for (auto& tensor : flat) tensor = torch::empty({3});
    const Model replaced = unflatten(model, flat);
    const auto again = flatten(replaced);
    for (std::size_t i = 0; i < flat.size(); ++i) RC_ASSERT(again[i].is_same(flat[i]));
    for (std::size_t i = 0; i < model.blocks.size(); ++i)
      RC_ASSERT(replaced.blocks[i].repeat == model.blocks[i].repeat);
  });
}

TEST(TreeRoundTrip, MapWithIdentityChangesNothing) {
  check([] {
    const Model model = draw_model();
    const auto flat = flatten(model);
    const auto mapped = flatten(map([](const torch::Tensor& t) { return t; }, model));
    for (std::size_t i = 0; i < flat.size(); ++i) RC_ASSERT(mapped[i].is_same(flat[i]));
  });
}

TEST(TreeRoundTrip, PathsAreDistinct) {
  check([] {
    auto names = paths(draw_model());
    std::sort(names.begin(), names.end());
    RC_ASSERT(std::adjacent_find(names.begin(), names.end()) == names.end());
  });
}

TEST(TreeRoundTrip, UnflattenRefusesTheWrongNumberOfTensors) {
  const std::pair<torch::Tensor, torch::Tensor> tree{torch::ones(1), torch::ones(1)};
  EXPECT_THROW(unflatten(tree, std::vector<torch::Tensor>(1)), TreeError);
  EXPECT_THROW(unflatten(tree, std::vector<torch::Tensor>(3)), TreeError);
}

}  // namespace round_trip_test
}  // namespace brigade::tree
