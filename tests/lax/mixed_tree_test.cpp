// A map of floating and integer tensors through every collective.
#include <gtest/gtest.h>

#include <functional>

#include "brigade/brigade.h"
#include "support/nine_devices.h"

namespace brigade {
namespace mixed_tree_test {

using Leaves = std::map<std::string, torch::Tensor>;

constexpr std::int64_t kDevices = 3;

struct Case {
  std::string name;
  std::function<Leaves(const Leaves&)> collective;
  // What all devices get of one leaf, in order, given what all of them have: (3, 3, 4).
  std::function<torch::Tensor(const torch::Tensor&)> expected;
  int meetings = 1;
};

torch::Tensor for_all(const torch::Tensor& result) {
  return torch::stack(std::vector<torch::Tensor>(static_cast<std::size_t>(kDevices), result));
}

const std::vector<Case> kCases = {
    {"psum", [](const Leaves& t) { return lax::psum(t, "i"); },
     [](const torch::Tensor& x) { return for_all(x.sum(0).to(x.scalar_type())); }},
    {"pmean", [](const Leaves& t) { return lax::pmean(t, "i"); },
     [](const torch::Tensor& x) { return for_all((x.to(torch::kDouble).sum(0) / 3).to(torch::kFloat)); }},
    {"weighted pmean", [](const Leaves& t) { return lax::pmean(t, "i", {.weight = lax::axis_index("i")}); },
     [](const torch::Tensor& x) { return for_all(((x[1] + 2 * x[2]).to(torch::kDouble) / 3).to(torch::kFloat)); }},
    {"pmax", [](const Leaves& t) { return lax::pmax(t, "i"); },
     [](const torch::Tensor& x) { return for_all(x.amax(0)); }},
    {"pmin", [](const Leaves& t) { return lax::pmin(t, "i"); },
     [](const torch::Tensor& x) { return for_all(x.amin(0)); }},
    {"pargmax", [](const Leaves& t) { return lax::pargmax(t, "i"); },
     [](const torch::Tensor& x) { return for_all(x.argmax(0).to(torch::kInt)); }, 2},
    {"pargmin", [](const Leaves& t) { return lax::pargmin(t, "i"); },
     [](const torch::Tensor& x) { return for_all(x.argmin(0).to(torch::kInt)); }, 2},
    {"all_gather", [](const Leaves& t) { return lax::all_gather(t, "i", {.axis = 1}); },
     [](const torch::Tensor& x) { return for_all(x.movedim(0, 1)); }},
    {"psum_scatter", [](const Leaves& t) { return lax::psum_scatter(t, "i"); },
     [](const torch::Tensor& x) { return x.sum(0).to(x.scalar_type()); }},
    {"all_to_all", [](const Leaves& t) { return lax::all_to_all(t, "i", {.split = 0, .concat = 1}); },
     [](const torch::Tensor& x) {
       return x.movedim({0, 1}, {2, 0});
     }},
    {"pswapaxes", [](const Leaves& t) { return lax::pswapaxes(t, "i", 0); },
     [](const torch::Tensor& x) { return x.transpose(0, 1); }},
    {"ppermute",
     [](const Leaves& t) {
       return lax::ppermute(t, "i", {{0, 1}, {2, 0}});
     },
     [](const torch::Tensor& x) {
       return torch::stack({x[2], x[0], torch::zeros_like(x[0])});
     }},
    {"pshuffle",
     [](const Leaves& t) {
       return lax::pshuffle(t, "i", {1, 2, 0});
     },
     [](const torch::Tensor& x) { return x.roll(-1, 0); }},
    {"pbroadcast", [](const Leaves& t) { return lax::pbroadcast(t, "i", 1); },
     [](const torch::Tensor& x) { return for_all(x[1]); }},
};

TEST(MixedTrees, PassThroughEveryCollectiveTogetherAndLeafByLeaf) {
  const torch::Tensor x = torch::randperm(kDevices * 3 * 4).reshape({kDevices, 3, 4}) - 10;
  const Leaves all = {{"float", x.to(torch::kFloat)}, {"int", x.to(torch::kInt)}, {"short", x.to(torch::kShort)}};
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.name);
    const auto f = pmap(
        [&](Leaves own) {
          const comm::Group& group = find_axis("i", std::source_location::current()).group();
          const std::int64_t before = group.statistics().calls;
          Leaves result = c.collective(own);
          EXPECT_EQ(group.statistics().calls, before + c.meetings);
          return result;
        },
        {.axis_name = "i"});
    const Leaves out = f(all).stack();
    EXPECT_EQ(out.size(), all.size());
    for (const auto& [name, values] : all) {
      const torch::Tensor expected = c.expected(values);
      EXPECT_EQ(out.at(name).scalar_type(), expected.scalar_type()) << name;
      EXPECT_TRUE(torch::equal(out.at(name), expected)) << name;
    }
  }
}

}  // namespace mixed_tree_test
}  // namespace brigade
