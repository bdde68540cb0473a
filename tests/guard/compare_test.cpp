// Each kind of difference, found by itself.
#include "brigade/guard/compare.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>

#include <cmath>

#include "brigade/base/error.h"
#include "support/errors.h"

namespace brigade::guard {
namespace compare_test {

using Kind = Difference::Kind;
using ::testing::ElementsAre;

Checkpoint example() {
  return {.step = 5,
          .model = {{"b", at::zeros({3})}, {"w", at::arange(6, at::kFloat).view({2, 3})}},
          .optimizer = {{"exp_avg.w", at::zeros({2, 3})}},
          .state = {{"loader", {{"epoch", 1}, {"step", 2}}}, {"name", "run"}}};
}

Difference only(const Comparison& found) {
  EXPECT_FALSE(found.equal());
  EXPECT_EQ(found.differences.size(), 1u);
  return found.differences.at(0);
}

TEST(Compare, TheSameIsEqual) {
  const Comparison found = compare(example(), example());
  EXPECT_TRUE(found.equal());
  EXPECT_EQ(found.tensors, 3);
}

TEST(Compare, ATensorThatOneLacks) {
  Checkpoint other = example();
  other.model.erase("b");
  const Difference one = only(compare(example(), other));
  EXPECT_EQ(one.kind, Kind::kOnlyInFirst);
  EXPECT_EQ(describe(one), "model \"b\": only the first has it: Float[3]");
  EXPECT_EQ(describe(only(compare(other, example()))), "model \"b\": only the second has it: Float[3]");
}

TEST(Compare, AnotherShapeOrDtype) {
  Checkpoint other = example();
  other.model["w"] = at::arange(6, at::kFloat).view({3, 2});
  EXPECT_EQ(describe(only(compare(example(), other))), "model \"w\": [2, 3] and [3, 2]");
  other.model["w"] = at::arange(6, at::kDouble).view({2, 3});
  EXPECT_EQ(describe(only(compare(example(), other))), "model \"w\": Float and Double");
}

TEST(Compare, OtherValuesByTheFirstIndexTheirNumberAndUnitsInTheLastPlace) {
  Checkpoint other = example();
  other.model["w"] = example().model["w"].clone();
  other.model["w"][0][2] = std::nextafter(std::nextafter(2.0f, 3.0f), 3.0f);
  other.model["w"][1][1] = std::nextafter(4.0f, 5.0f);
  const Difference one = only(compare(example(), other));
  EXPECT_EQ(one.kind, Kind::kValues);
  EXPECT_THAT(one.index, ElementsAre(0, 2));
  EXPECT_EQ(one.count, 2u);
  EXPECT_EQ(one.elements, 6u);
  EXPECT_EQ(one.largest_ulps, 2u);
  EXPECT_EQ(describe(one),
            "model \"w\": 2 of 6 elements differ, first [0, 2]: 2 and 2.0000005, up to 2 units in the last place");
}

TEST(Compare, BitsAndNotValues) {
  Checkpoint one = example(), other = example();
  other.model["b"][1] = -0.0;
  EXPECT_EQ(describe(only(compare(one, other))),
            "model \"b\": 1 of 3 elements differ, first [1]: 0 and -0, up to 1 unit in the last place");
  one.model["b"][1] = other.model["b"][1] = std::nan("");
  EXPECT_TRUE(compare(one, other).equal());
}

// The order of memory does not show.
TEST(Compare, StridesDoNotCount) {
  Checkpoint other = example();
  other.model["w"] = example().model["w"].t().contiguous().t();
  EXPECT_TRUE(compare(example(), other).equal());
}

TEST(Compare, TheStateByPath) {
  Checkpoint other = example();
  other.step = 6;
  other.state["loader"]["step"] = 3;
  other.state["name"] = nullptr;
  other.state["a\x1b[31m"] = {{"b", 1}};
  std::vector<std::string> lines;
  for (const Difference& one : compare(example(), other).differences) lines.push_back(describe(one));
  EXPECT_THAT(lines,
              ElementsAre("state \"/a\\u001b[31m/b\": only the second has it: 1", "state \"/loader/step\": 2 and 3",
                          "state \"/name\": \"run\" and null", "state \"/step\": 5 and 6"));
}

TEST(Compare, WhoWroteThemIsANoteAndNoDifference) {
  Checkpoint one = example(), other = example();
  one.state["written_by"] = {{"brigade", "0.1.0"}, {"devices", 2}};
  other.state["written_by"] = {{"brigade", "0.1.0"}, {"devices", 8}};
  const Comparison found = compare(one, other);
  EXPECT_TRUE(found.equal());
  ASSERT_EQ(found.notes.size(), 1u);
  EXPECT_EQ(describe(found.notes[0]), "written_by \"/devices\": 2 and 8");
  EXPECT_EQ(compare(one, example()).notes.size(), 2u);
}

TEST(Compare, ADtypeThatNoFileHoldsIsRefused) {
  const data::TensorMap phases = {{"phase", at::zeros({2}, at::kComplexFloat)}};
  EXPECT_ERROR(compare(phases, phases), InvalidArgument, "ComplexFloat");
}

}  // namespace compare_test
}  // namespace brigade::guard
