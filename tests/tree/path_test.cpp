#include "brigade/tree/path.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "brigade/base/error.h"

namespace brigade::tree {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

TEST(Path, ReadsAsOneWouldWriteIt) {
  Path path;
  path.push({.index = 0, .count = 2});
  path.push({.name = "layers", .index = 1, .count = 3});
  path.push({.name = "block 1", .index = 0, .count = 1});
  path.push({.index = 7, .count = 9});
  EXPECT_EQ(path.text(), "[0].layers[\"block 1\"][7]");
  path.pop();
  EXPECT_EQ(path.text(), "[0].layers[\"block 1\"]");
}

TEST(Path, StartsWithItsRootAndOmitsALeadingDot) {
  Path rooted("in_axes");
  rooted.push({.name = "w1"});
  EXPECT_EQ(rooted.text(), "in_axes.w1");
  Path bare;
  bare.push({.name = "w1"});
  EXPECT_EQ(bare.text(), "w1");
}

TEST(Path, OfALoneLeafSaysSo) { EXPECT_EQ(Path().text(), "the tree itself"); }

TEST(StructureMismatch, NamesThePathAndTheDifference) {
  Path path;
  path.push({.name = "layers"});
  EXPECT_THAT([&] { throw_structure_mismatch(path, "one has 2 elements, another has 3"); },
              ThrowsMessage<TreeError>(AllOf(HasSubstr("differ at layers"), HasSubstr("one has 2 elements"))));
}

TEST(LeafCountMismatch, SaysBothNumbers) {
  EXPECT_THAT([] { throw_leaf_count_mismatch(4, 3); },
              ThrowsMessage<TreeError>(HasSubstr("3 tensors cannot fill a tree that holds 4")));
}

}  // namespace
}  // namespace brigade::tree
