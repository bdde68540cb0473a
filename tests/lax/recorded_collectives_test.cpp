// Values and gradients of collectives, as JAX recorded them.
#include <gtest/gtest.h>

#include <set>

#include "brigade/brigade.h"
#include "support/cases.h"
#include "support/nine_devices.h"

namespace brigade {
namespace {

using Body = std::function<torch::Tensor(torch::Tensor)>;

// The body that the case's operation stands for; empty for operations of other tests.
Body body_of(const nlohmann::json& c) {
  const std::string op = c["op"];
  const auto& args = c["args"];
  if (args.contains("groups")) return {};
  if (op == "psum") return [](torch::Tensor t) { return lax::psum(t, "i"); };
  if (op == "pmean") return [](torch::Tensor t) { return lax::pmean(t, "i"); };
  if (op == "pmax") return [](torch::Tensor t) { return lax::pmax(t, "i"); };
  if (op == "pmin") return [](torch::Tensor t) { return lax::pmin(t, "i"); };
  if (op == "x_minus_psum") return [](torch::Tensor t) { return t - lax::psum(t, "i"); };
  if (op == "all_gather") {
    const lax::AllGatherOptions options{.axis = args["axis"].get<std::int64_t>(), .tiled = args["tiled"].get<bool>()};
    return [options](torch::Tensor t) { return lax::all_gather(t, "i", options); };
  }
  if (op == "axis_index") return [](torch::Tensor t) { return lax::axis_index("i") + 0 * t.to(torch::kInt); };
  if (op == "psum_constant") {
    const auto constant = args["constant"].get<std::int64_t>();
    return [constant](torch::Tensor t) { return lax::psum(constant, "i") + 0 * t; };
  }
  if (op == "grad_of_psum_loss" || op == "grad_of_pmean_loss") {
    const bool mean = op == "grad_of_pmean_loss";
    return [mean](torch::Tensor t) {
      return grad([mean](const torch::Tensor& v) {
        const torch::Tensor loss = v.square().sum();
        return mean ? lax::pmean(loss, "i") : lax::psum(loss, "i");
      })(t);
    };
  }
  return {};
}

// JAX multiplies by 1/N where ours divides, which may differ by one unit in the last place when N is no power of two.
void expect_equal(const torch::Tensor& ours, const torch::Tensor& recorded, bool one_ulp) {
  ASSERT_EQ(ours.sizes(), recorded.sizes());
  ASSERT_EQ(ours.scalar_type(), recorded.scalar_type());
  if (one_ulp) {
    EXPECT_TRUE(torch::allclose(ours, recorded, /*rtol=*/1.2e-7, /*atol=*/0)) << ours << recorded;
  } else {
    EXPECT_TRUE(torch::equal(ours, recorded)) << ours << recorded;
  }
}

TEST(RecordedCollectives, AgreeWithJax) {
  const auto file = cases::load("jax/collectives.json");
  std::map<std::string, int> checked;
  for (const auto& c : file.at("cases")) {
    const Body body = body_of(c);
    if (!body) continue;
    const std::string op = c["op"];
    const int devices = c["devices"];
    SCOPED_TRACE(op + " on " + std::to_string(devices) + " devices, " + c["args"].dump());
    const bool one_ulp = op.find("pmean") != std::string::npos && devices == 3;
    const torch::Tensor x = cases::tensor_of(c["in"]);
    const auto f = pmap(body, {.axis_name = "i"});
    expect_equal(f(x).stack(), cases::tensor_of(c["out"]), one_ulp);
    if (c.contains("grad")) {
      const torch::Tensor w = cases::tensor_of(c["cotangent"]);
      expect_equal(grad([&](const torch::Tensor& v) { return (f(v).stack() * w).sum(); })(x),
                   cases::tensor_of(c["grad"]), one_ulp);
    }
    ++checked[op];
  }
  for (const std::string op : {"psum", "pmean", "pmax", "pmin", "x_minus_psum", "all_gather", "axis_index",
                               "psum_constant", "grad_of_psum_loss", "grad_of_pmean_loss"}) {
    EXPECT_GT(checked[op], 0) << op;
  }
}

}  // namespace
}  // namespace brigade
