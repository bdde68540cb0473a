// Every way to call a pmap wrongly, and what it says.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "brigade/brigade.h"
#include "support/nine_devices.h"

namespace brigade {
namespace pmap_errors_test {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::ThrowsMessage;

const auto kAdd = [](torch::Tensor a, torch::Tensor b) { return a + b; };

struct Params {
  torch::Tensor w1, b1;
};

TEST(PmapErrors, SizesThatDisagreeListEveryArgumentWithItsShape) {
  const auto f = pmap([](Params p, torch::Tensor x, torch::Tensor whole) { return p.w1 + x + whole; },
                      {.axis_name = "devices", .in_axes = {0, 1, none}});
  EXPECT_THAT(
      [&] {
        f(Params{torch::ones({4, 2}), torch::ones({3})}, torch::ones({2, 4}), torch::ones({7}));
      },
      ThrowsMessage<ShapeError>(AllOf(HasSubstr("[0].w1: shape [4, 2], size 4"),
                                      HasSubstr("[0].b1: shape [3], size 3  <-- differs"),
                                      HasSubstr("[1]: shape [2, 4], size 4"), HasSubstr("[2]: shape [7], not mapped"),
                                      HasSubstr("axis \"devices\""), HasSubstr("pmap_errors_test.cpp:"))));
}

TEST(PmapErrors, ABatchThatDevicesDivideIsToldHowToBeReshaped) {
  const auto f = pmap([](torch::Tensor x) { return x; }, {.axis_size = 4});
  EXPECT_THAT(
      [&] {
        f(torch::ones({128, 784}));
      },
      ThrowsMessage<ShapeError>(AllOf(HasSubstr("size 4 (axis_size)"), HasSubstr("reshape them to (4, 32, ...)"))));
}

TEST(PmapErrors, ABatchThatDevicesDoNotDivideNamesShapeAndCount) {
  const auto f = pmap([](torch::Tensor x) { return x; }, {.axis_size = 4});
  EXPECT_THAT(
      [&] {
        f(torch::ones({10, 3}));
      },
      ThrowsMessage<ShapeError>(AllOf(HasSubstr("[10, 3]"), HasSubstr("4 devices do not divide the 10 rows of [0]"),
                                      HasSubstr("pad_and_mask(..., 4) pads them to 12"))));
}

TEST(PmapErrors, ABatchBesideAShardedIsToldHowToBeReshaped) {
  const auto f = pmap(kAdd);
  const std::vector<Device> three(devices().begin(), devices().begin() + 3);
  EXPECT_THAT(
      [&] {
        f(replicate(torch::ones({1}), three), torch::ones({10, 2}));
      },
      ThrowsMessage<ShapeError>(HasSubstr("3 devices do not divide the 10 rows of [1]")));
}

TEST(PmapErrors, AdviceOnSizesFitsTheArgument) {
  const auto f = pmap(kAdd, {.in_axes = {0, 1}, .axis_size = 4});
  const auto says = [](auto matcher) { return ThrowsMessage<ShapeError>(matcher); };
  const std::vector<Device> eight(devices().begin(), devices().begin() + 8);
  EXPECT_THAT([&] { pmap([](torch::Tensor x) { return x; }, {.axis_size = 4})(replicate(torch::ones({1}), eight)); },
              says(AllOf(HasSubstr("[0]: a Sharded over 8 devices, size 8  <-- differs"),
                         HasSubstr("A Sharded is mapped as it is: make [0] on 4 devices"), Not(HasSubstr("reshape")))));
  // Nothing to split: another axis, too few rows, or two arguments that merely differ.
  const auto plain = AllOf(HasSubstr("<-- differs\n ("), Not(HasSubstr("reshape")), Not(HasSubstr("pad_and_mask")));
  EXPECT_THAT([&] { f(torch::ones({4}), torch::ones({1, 8})); }, says(plain));
  EXPECT_THAT(
      [&] {
        f(torch::ones({3}), torch::ones({1, 4}));
      },
      says(AllOf(HasSubstr("size 3  <-- differs"), Not(HasSubstr("reshape")), Not(HasSubstr("pad_and_mask")))));
  EXPECT_THAT(
      [&] {
        f(torch::ones({0}), torch::ones({1, 4}));
      },
      says(AllOf(HasSubstr("size 0  <-- differs"), Not(HasSubstr("reshape")), Not(HasSubstr("pad_and_mask")))));
  EXPECT_THAT([&] { pmap([](Params p) { return p; })(Params{torch::ones({2}), torch::ones({4})}); }, says(plain));
}

TEST(PmapErrors, NoMappedArgument) {
  EXPECT_THAT([] { pmap(kAdd, {.in_axes = none})(torch::ones({2}), torch::ones({2})); },
              ThrowsMessage<InvalidArgument>(HasSubstr("needs at least one mapped argument")));
  EXPECT_THAT([] { pmap([](std::vector<torch::Tensor> v) { return v; })(std::vector<torch::Tensor>{}); },
              ThrowsMessage<InvalidArgument>(HasSubstr("needs at least one mapped argument")));
  EXPECT_THAT(
      [] { pmap([](int v) { return v; }, {.axis_name = "i"})(3); },
      ThrowsMessage<InvalidArgument>(AllOf(HasSubstr("pass a tensor with a leading dimension or a Sharded, or say "
                                                     ".axis_size"),
                                           HasSubstr("axis \"i\""), HasSubstr("pmap_errors_test.cpp:"))));
}

TEST(PmapErrors, ARankTooLowForItsAxis) {
  EXPECT_THAT(
      [] {
        pmap([](Params p) { return p; })(Params{torch::ones({4}), torch::tensor(1.0)});
      },
      ThrowsMessage<ShapeError>(AllOf(HasSubstr("a tensor of shape [] has no axis 0"), HasSubstr("argument [0].b1"),
                                      HasSubstr("pmap_errors_test.cpp:"))));
  EXPECT_THAT(
      [] {
        pmap(kAdd, {.axis_name = "i", .in_axes = {0, 2}})(torch::ones({4}), torch::ones({4, 4}));
      },
      ThrowsMessage<ShapeError>(
          AllOf(HasSubstr("[4, 4] has no axis 2"), HasSubstr("argument [1]"), HasSubstr("axis \"i\""))));
  EXPECT_THROW(pmap(kAdd, {.in_axes = {0, -3}})(torch::ones({4}), torch::ones({4, 4})), ShapeError);
}

TEST(PmapErrors, MoreRowsThanDevices) {
  EXPECT_THAT(
      [] {
        pmap([](torch::Tensor x) { return x; })(torch::ones({10, 2}));
      },
      ThrowsMessage<InvalidArgument>(AllOf(HasSubstr("has size 10 and there are 9 devices"),
                                           HasSubstr("BRIGADE_CPU_DEVICES=10"), HasSubstr("pad_and_mask(..., 9)"),
                                           HasSubstr("pmap_errors_test.cpp:"))));
  EXPECT_THAT([] { pmap([](int v) { return v; }, {.axis_size = 60000})(1); },
              ThrowsMessage<InvalidArgument>(
                  AllOf(HasSubstr("has size 60000 and there are 9 devices"), Not(HasSubstr("BRIGADE_CPU_DEVICES")))));
  EXPECT_THAT(
      [] {
        pmap([](int v) { return v; }, {.mesh = Mesh{{"a", 5}, {"b", 2}}})(1);
      },
      ThrowsMessage<InvalidArgument>(AllOf(HasSubstr("make the mesh smaller, or start with "
                                                     "BRIGADE_CPU_DEVICES=10"),
                                           Not(HasSubstr("rows")))));
  // Also when the body does not look at the value.
  EXPECT_THROW(pmap([](torch::Tensor) { return 1; })(torch::ones({10})), InvalidArgument);
}

TEST(PmapErrors, NoRowsAtAll) {
  EXPECT_THAT(
      [] {
        pmap([](torch::Tensor x) { return x; })(torch::ones({0, 2}));
      },
      ThrowsMessage<InvalidArgument>(HasSubstr("a mapped axis of size 0")));
}

TEST(PmapErrors, AxesThatAreNoPrefixNameThePath) {
  const torch::Tensor x = torch::ones({2});
  EXPECT_THAT(
      [&] {
        pmap([](std::tuple<std::pair<torch::Tensor, torch::Tensor>, torch::Tensor> t) { return t; },
             {.axis_name = "i", .in_axes = {{{0, 0, 0}, 0}}})(std::tuple(std::pair(x, x), x));
      },
      ThrowsMessage<TreeError>(AllOf(HasSubstr("in_axes[0][0] has 3 entries where the value has 2 children"),
                                     HasSubstr("axis \"i\""), HasSubstr("pmap_errors_test.cpp:"))));
  EXPECT_THAT(
      [] {
        pmap([](Params p, torch::Tensor) { return p; }, {.in_axes = {{0, 0, 0}, 0}})(
            Params{torch::ones({2}), torch::ones({2})}, torch::ones({2}));
      },
      ThrowsMessage<TreeError>(HasSubstr("in_axes[0] has 3 entries where the value has 2 children")));
  EXPECT_THAT([] { pmap(kAdd, {.in_axes = {0}})(torch::ones({2}), torch::ones({2})); },
              ThrowsMessage<TreeError>(HasSubstr("in_axes has 1 entries where the value has 2 children")));
  const auto s = replicate(torch::ones({2}));
  EXPECT_THAT(
      [&] {
        pmap(kAdd, {.in_axes = {0, 0, 0}})(s, s);
      },
      ThrowsMessage<TreeError>(HasSubstr("in_axes has 3 entries where the value has 2 children")));
  EXPECT_THAT([&] { pmap(kAdd, {.in_axes = {0}})(s, s); },
              ThrowsMessage<TreeError>(HasSubstr("in_axes has 1 entries where the value has 2 children")));
}

TEST(PmapErrors, DevicesEmptyTwiceOrInTheWrongNumber) {
  const auto identity = [](torch::Tensor x) { return x; };
  EXPECT_THAT([&] { pmap(identity, {.axis_name = "i", .devices = std::vector<Device>{}})(torch::ones({2})); },
              ThrowsMessage<InvalidArgument>(
                  AllOf(HasSubstr("`devices` is empty"), HasSubstr("axis \"i\""), HasSubstr("pmap_errors_test.cpp:"))));
  EXPECT_THAT([&] { pmap([](int v) { return v; }, {.devices = std::vector<Device>{}})(1); },
              ThrowsMessage<InvalidArgument>(HasSubstr("`devices` is empty")));
  EXPECT_THAT(
      [&] {
        pmap(identity, {.axis_name = "i", .devices = {{devices()[1], devices()[1]}}})(torch::ones({2}));
      },
      ThrowsMessage<InvalidArgument>(
          AllOf(HasSubstr("cpu:1 stands twice"), HasSubstr("axis \"i\""), HasSubstr("pmap_errors_test.cpp:"))));
  EXPECT_THAT(
      [&] {
        pmap(identity, {.devices = {{devices()[1], devices()[2]}}})(torch::ones({3}));
      },
      ThrowsMessage<ShapeError>(HasSubstr("size 2 (the number of devices given)")));
}

TEST(PmapErrors, AnUnknownAxisNameListsThoseInScope) {
  EXPECT_THAT(
      [] { pmap([](torch::Tensor x) { return lax::psum(x, "device"); }, {.axis_name = "devices"})(torch::ones({2})); },
      ThrowsMessage<AxisError>(AllOf(HasSubstr("axis \"device\" is not in scope here: in scope is \"devices\""),
                                     HasSubstr("pmap_errors_test.cpp:"))));
  EXPECT_THAT([] { pmap([](torch::Tensor x) { return lax::psum(x, "i"); })(torch::ones({2})); },
              ThrowsMessage<AxisError>(HasSubstr("the pmap gives its axis no name; set .axis_name")));
  EXPECT_THAT([] { lax::psum(torch::ones({2}), "i"); }, ThrowsMessage<AxisError>(HasSubstr("this thread runs none")));
}

TEST(PmapErrors, ResultsWhoseStructuresDiffer) {
  const auto refuses = [](auto body, auto matcher) {
    EXPECT_THAT([&] { pmap(body, {.axis_name = "i"})(torch::ones({2})); },
                ThrowsMessage<TreeError>(
                    AllOf(HasSubstr("the body's result on this device has another structure than on device 0"), matcher,
                          HasSubstr("axis \"i\", device 1"), HasSubstr("pmap_errors_test.cpp:"))));
  };
  refuses(
      [](torch::Tensor x) { return std::vector<torch::Tensor>(static_cast<std::size_t>(1 + lax::axis_index("i")), x); },
      HasSubstr("one has 1 elements, another has 2"));
  refuses(
      [](torch::Tensor x) {
        return std::map<std::string, torch::Tensor>{{lax::axis_index("i") == 0 ? "a" : "b", x}};
      },
      HasSubstr("one has the key \"a\", another has not"));
  refuses([](torch::Tensor x) { return std::pair(x, lax::axis_index("i") == 0 ? std::optional(x) : std::nullopt); },
          AllOf(HasSubstr("one optional holds a value, another is empty"), HasSubstr("[1]")));
  refuses(
      [](torch::Tensor x) {
        return Params{x, lax::axis_index("i") == 0 ? x : torch::Tensor()};
      },
      AllOf(HasSubstr("one tensor is undefined, another is not"), HasSubstr("b")));
}

TEST(PmapErrors, AShardedWithAnotherAxisOrUndefinedTensors) {
  const auto s = replicate(torch::ones({2}));
  EXPECT_THAT([&] { pmap([](torch::Tensor x) { return x; }, {.in_axes = 1})(s); },
              ThrowsMessage<TreeError>(AllOf(HasSubstr("leave its in_axes at 0"), HasSubstr("argument [0]"))));
  EXPECT_THAT([] { pmap(kAdd)(torch::ones({2}), torch::Tensor()); },
              ThrowsMessage<TreeError>(AllOf(HasSubstr("undefined"), HasSubstr("argument [1]"))));
}

TEST(PmapErrors, AResultThatDependsOnACapturedTensorThatRequiresGrad) {
  const auto expect_refused = [](const auto& call) {
    EXPECT_THAT(call, ThrowsMessage<InvalidArgument>(
                          AllOf(HasSubstr("a tensor of shape [2] that requires grad and is not an argument"),
                                HasSubstr("in_axes none"), HasSubstr("pmap_errors_test.cpp:"))));
  };
  const torch::Tensor x = torch::ones({3, 2});
  const torch::Tensor w = torch::ones({2}).requires_grad_();
  expect_refused([&] { pmap([&](torch::Tensor t) { return t * w; })(x); });
  // Also beside an argument that requires grad, and for the variable of a grad outside.
  expect_refused([&] { pmap([&](torch::Tensor t) { return t * w; })(x.clone().requires_grad_()); });
  const auto lost = [&](const torch::Tensor& v) {
    return pmap([&](torch::Tensor t) { return t * v; })(x).stack().sum();
  };
  expect_refused([&] { grad(lost)(torch::ones({2})); });
  expect_refused([&] { grad([&](const torch::Tensor& v) { return grad(lost)(v).sum(); })(torch::ones({2})); });
  // A captured leaf as the result itself, and one that only a gradient inside depends on.
  expect_refused([&] { pmap([&](torch::Tensor) { return w; })(x); });
  const auto inside = [&](const torch::Tensor& v) {
    return pmap([&](torch::Tensor t) { return grad([&](const torch::Tensor& u) { return (v * u * u).sum(); })(t); })(x)
        .stack()
        .sum();
  };
  expect_refused([&] { grad(inside)(torch::ones({2})); });
  // What does not reach a result is nobody's loss.
  EXPECT_NO_THROW(pmap([&](torch::Tensor t) { return t * w.detach(); })(x));
}

TEST(PmapErrors, AxisSizesThatMakeNoSense) {
  const auto f = [](torch::Tensor x) { return x; };
  EXPECT_THAT([&] { pmap(f, {.axis_size = -1})(torch::ones({2})); },
              ThrowsMessage<InvalidArgument>(HasSubstr("axis_size is -1")));
  EXPECT_THAT([&] { pmap([](int v) { return v; }, {.devices = {{devices()[0]}}, .axis_size = 2})(1); },
              ThrowsMessage<InvalidArgument>(HasSubstr("axis_size is 2 and `devices` names 1")));
}

TEST(PmapErrors, OutAxesThatAreNoPrefixOfTheResult) {
  EXPECT_THAT(
      [] {
        pmap([](torch::Tensor x) { return std::tuple(std::tuple(std::pair(x, x), x), x); },
             {.axis_name = "i", .out_axes = Axes{Axes{Axes{0, 0, 0}, 0}, 0}})(torch::ones({2}));
      },
      ThrowsMessage<TreeError>(AllOf(HasSubstr("out_axes[0][0] has 3 entries where the value has 2 children"),
                                     HasSubstr("axis \"i\""), HasSubstr("pmap_errors_test.cpp:"))));
  EXPECT_THAT(
      [] {
        pmap([](torch::Tensor x) { return std::pair(x, x); }, {.out_axes = {0, 0, 0}})(torch::ones({2}));
      },
      ThrowsMessage<TreeError>(AllOf(HasSubstr("out_axes has 3 entries where the value has 2 children"),
                                     HasSubstr("pmap_errors_test.cpp:"))));
  // Also where they differ at a number only.
  EXPECT_THAT(
      [] {
        pmap([](torch::Tensor x) { return std::pair(x, 1); }, {.out_axes = {0, {0, 0}}})(torch::ones({2}));
      },
      ThrowsMessage<TreeError>(HasSubstr("out_axes[1] has 2 entries")));
}

TEST(PmapErrors, TheNextCallWorks) {
  const auto f = pmap([](torch::Tensor x) { return lax::psum(x, "j"); }, {.axis_name = "i"});
  for (int i = 0; i < 3; ++i) EXPECT_THROW(f(torch::ones({4})), AxisError);
  EXPECT_EQ(
      pmap([](torch::Tensor x) { return lax::psum(x, "i"); }, {.axis_name = "i"})(torch::ones({4}))[1].item<float>(),
      4);
}

}  // namespace pmap_errors_test
}  // namespace brigade
