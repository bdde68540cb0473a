// in_axes, out_axes and gradients through them, as JAX recorded them.
#include <gtest/gtest.h>

#include "brigade/brigade.h"
#include "support/cases.h"
#include "support/nine_devices.h"

namespace brigade {
namespace recorded_pmap_test {

Axes axis_of(const nlohmann::json& value) { return value.is_null() ? Axes(none) : Axes(value.get<int>()); }

TEST(RecordedPmap, AgreesWithJax) {
  const auto file = cases::load("jax/pmap.json");
  int checked = 0;
  for (const auto& c : file.at("cases")) {
    SCOPED_TRACE(c.at("name").get<std::string>() + " out_axes " + c.at("out_axes").dump());
    const torch::Tensor a = cases::tensor_of(c["in"][0]), b = cases::tensor_of(c["in"][1]),
                        d = cases::tensor_of(c["in"][2]);
    const auto f = pmap([](torch::Tensor x, torch::Tensor y,
                           torch::Tensor z) { return std::pair(x * 2 + z, y.sum() + x.sum() + z.sum()); },
                        {.in_axes = {axis_of(c["in_axes"][0]), axis_of(c["in_axes"][1]), axis_of(c["in_axes"][2])},
                         .out_axes = {axis_of(c["out_axes"][0]), axis_of(c["out_axes"][1])}});
    if (c.contains("out")) {
      const auto out = f(a, b, d).stack();
      EXPECT_TRUE(torch::equal(out.first, cases::tensor_of(c["out"][0])));
      EXPECT_TRUE(torch::equal(out.second, cases::tensor_of(c["out"][1])));
      ++checked;
    }
    if (c.contains("grad")) {
      const std::array<torch::Tensor, 3> at{a, b, d};
      const auto g = grad([&](const std::array<torch::Tensor, 3>& v) {
        const auto out = f(v[0], v[1], v[2]).stack();
        return out.first.square().sum() + out.second.square().sum();
      })(at);
      for (int i = 0; i < 3; ++i) EXPECT_TRUE(torch::equal(g[i], cases::tensor_of(c["grad"][i]))) << i;
      ++checked;
    }
  }
  EXPECT_EQ(checked, 4);
}

}  // namespace recorded_pmap_test
}  // namespace brigade
