#include "brigade/runtime/mesh.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "brigade/base/error.h"
#include "brigade/runtime/axis.h"

namespace brigade {
namespace mesh_test {

using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

TEST(Mesh, HasTheProductOfItsSizesAsDevices) {
  const std::int64_t hosts = 2;
  const Mesh mesh{{"host", hosts}, {"device", 4}};
  EXPECT_EQ(mesh.size(), 8);
  EXPECT_EQ(mesh.name(), "host, device");
  EXPECT_EQ(mesh.axes()[1].name, "device");
  const std::vector<MeshAxis> axes = {{"a", 3}};
  EXPECT_EQ(Mesh(axes).size(), 3);
  EXPECT_EQ((Mesh{{"a", 3}}.axes().size()), 1U);
}

TEST(Mesh, RefusesNoAxesNamesThatAreEmptyOrStandTwiceAndSizesBelowOne) {
  EXPECT_THAT([] { Mesh(std::vector<MeshAxis>{}); },
              ThrowsMessage<InvalidArgument>(AllOf(HasSubstr("a mesh without axes"), HasSubstr("mesh_test.cpp:"))));
  EXPECT_THAT(([] { Mesh{{"", 2}}; }), ThrowsMessage<InvalidArgument>(HasSubstr("has no name")));
  EXPECT_THAT(([] {
                Mesh{{"a", 2}, {"b", 2}, {"a", 3}};
              }),
              ThrowsMessage<InvalidArgument>(HasSubstr("axis \"a\" stands twice")));
  EXPECT_THAT(([] {
                Mesh{{"a", 2}, {"b", 0}};
              }),
              ThrowsMessage<InvalidArgument>(HasSubstr("axis \"b\" of a mesh has size 0")));
  EXPECT_THAT(([] {
                Mesh{{"a", 1 << 20}, {"b", 1 << 20}};
              }),
              ThrowsMessage<InvalidArgument>(HasSubstr("a mesh of more than")));
}

TEST(Mesh, OfAnotherSizeThanTheDevicesIsRefused) {
  EXPECT_THAT(([] {
                Axis::create(Mesh{{"a", 2}, {"b", 3}}, {devices().front()});
              }),
              ThrowsMessage<InvalidArgument>(AllOf(HasSubstr("a mesh of 6 devices was given 1"), HasSubstr("a, b"))));
}

TEST(AxisNames, AreOneOrSeveral) {
  const std::string one = "one";
  EXPECT_EQ(AxisNames("i").text(), "i");
  EXPECT_EQ(AxisNames(one).text(), "one");
  EXPECT_EQ(AxisNames({one, "two"}).text(), "one, two");
  EXPECT_EQ(AxisNames(std::vector<std::string>{"b", "a"}).text(), "b, a");
}

}  // namespace mesh_test
}  // namespace brigade
