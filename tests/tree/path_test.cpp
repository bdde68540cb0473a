#include "brigade/tree/path.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "brigade/base/error.h"

namespace brigade::tree {
namespace path_test {

using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

TEST(Path, ReadsAsOneWouldWriteIt) {
  const Path root;
  const Path argument = root.below({.index = 0, .count = 2});
  const Path layers = argument.below({.name = "layers", .index = 1, .count = 3});
  const Path block = layers.below({.name = "block 1", .index = 0, .count = 1});
  const Path element = block.below({.index = 7, .count = 9});
  EXPECT_EQ(element.text(), "[0].layers[\"block 1\"][7]");
  EXPECT_EQ(element.parent()->text(), "[0].layers[\"block 1\"]");
  EXPECT_EQ(element.step().count, 9);
}

TEST(Path, StartsWithItsRootAndOmitsALeadingDot) {
  const Path root;
  const Path w1 = root.below({.name = "w1"});
  EXPECT_EQ(w1.text("in_axes"), "in_axes.w1");
  EXPECT_EQ(root.text("in_axes"), "in_axes");
  EXPECT_EQ(w1.text(), "w1");
}

TEST(Path, OfALoneLeafSaysSo) { EXPECT_EQ(Path().text(), "the tree itself"); }

TEST(StructureMismatch, NamesThePathAndTheDifference) {
  const Path root;
  const Path path = root.below({.name = "layers"});
  EXPECT_THAT([&] { throw_structure_mismatch(path, "one has 2 elements, another has 3"); },
              ThrowsMessage<TreeError>(AllOf(HasSubstr("differ at layers"), HasSubstr("one has 2 elements"))));
}

TEST(LeafCountMismatch, SaysBothNumbers) {
  EXPECT_THAT([] { throw_leaf_count_mismatch(4, 3); },
              ThrowsMessage<TreeError>(HasSubstr("3 tensors cannot fill a tree that holds 4")));
}

}  // namespace path_test
}  // namespace brigade::tree
