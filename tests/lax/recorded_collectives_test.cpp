// Values and gradients of collectives, as JAX recorded them.
#include <gtest/gtest.h>

#include <bit>

#include "brigade/brigade.h"
#include "support/cases.h"
#include "support/nine_devices.h"

namespace brigade {
namespace recorded_collectives_test {

using Body = std::function<torch::Tensor(torch::Tensor)>;

// The body that a case's operation and arguments stand for; empty for an operation that is not known.
Body body_of(const std::string& op, const nlohmann::json& args) {
  const auto dim = [&args](const char* name) { return args.at(name).get<std::int64_t>(); };
  const lax::AxisIndexGroups groups = args.value("groups", lax::AxisIndexGroups{});
  const bool tiled = args.value("tiled", false);
  if (op == "psum") return [=](torch::Tensor t) { return lax::psum(t, "i", {groups}); };
  if (op == "pmean") return [=](torch::Tensor t) { return lax::pmean(t, "i", {.axis_index_groups = groups}); };
  if (op == "pmax") return [=](torch::Tensor t) { return lax::pmax(t, "i", {groups}); };
  if (op == "pmin") return [=](torch::Tensor t) { return lax::pmin(t, "i", {groups}); };
  if (op == "pargmax") return [=](torch::Tensor t) { return lax::pargmax(t, "i", {groups}); };
  if (op == "pargmin") return [=](torch::Tensor t) { return lax::pargmin(t, "i", {groups}); };
  if (op == "x_minus_psum") return [](torch::Tensor t) { return t - lax::psum(t, "i"); };
  if (op == "all_gather") {
    const lax::AllGatherOptions options{.axis = dim("axis"), .tiled = tiled, .axis_index_groups = groups};
    return [=](torch::Tensor t) { return lax::all_gather(t, "i", options); };
  }
  if (op == "psum_scatter") {
    const lax::PsumScatterOptions options{.dim = dim("dim"), .tiled = tiled, .axis_index_groups = groups};
    return [=](torch::Tensor t) { return lax::psum_scatter(t, "i", options); };
  }
  if (op == "all_to_all") {
    const lax::AllToAllOptions options{
        .split = dim("split"), .concat = dim("concat"), .tiled = tiled, .axis_index_groups = groups};
    return [=](torch::Tensor t) { return lax::all_to_all(t, "i", options); };
  }
  if (op == "pswapaxes") return [axis = dim("axis")](torch::Tensor t) { return lax::pswapaxes(t, "i", axis); };
  if (op == "ppermute") {
    return [pairs = args.at("pairs").get<lax::RankPairs>()](torch::Tensor t) { return lax::ppermute(t, "i", pairs); };
  }
  if (op == "pshuffle") {
    return [perm = args.at("perm").get<std::vector<int>>()](torch::Tensor t) { return lax::pshuffle(t, "i", perm); };
  }
  if (op == "pbroadcast") {
    return [source = args.at("source").get<int>()](torch::Tensor t) { return lax::pbroadcast(t, "i", source); };
  }
  if (op == "axis_index") return [](torch::Tensor t) { return lax::axis_index("i") + 0 * t.to(torch::kInt); };
  if (op == "psum_constant") {
    return [constant = dim("constant")](torch::Tensor t) { return lax::psum(constant, "i") + 0 * t; };
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

// JAX multiplies by 1/N where ours divides. When N is no power of two its values may be one unit in the last place off,
// and its gradients, which are scaled before they are summed, off by a rounding of each term (of at most 4/N here).
enum class Agreement { kExact, kOneUnit, kRoundedTerms };

void expect_equal(const torch::Tensor& ours, const torch::Tensor& recorded, Agreement agreement) {
  ASSERT_EQ(ours.sizes(), recorded.sizes());
  ASSERT_EQ(ours.scalar_type(), recorded.scalar_type());
  if (agreement == Agreement::kExact) {
    EXPECT_TRUE(torch::equal(ours, recorded)) << ours << recorded;
  } else if (agreement == Agreement::kOneUnit) {
    // Neighbouring floats of one sign have neighbouring bit patterns.
    const torch::Tensor distance = ours.contiguous().view(torch::kInt) - recorded.contiguous().view(torch::kInt);
    EXPECT_LE(distance.abs().max().item<int>(), 1) << ours << recorded;
  } else {
    EXPECT_TRUE(torch::allclose(ours, recorded, /*rtol=*/0, /*atol=*/4e-7)) << ours << recorded;
  }
}

// The gradient that JAX 0.7.2 gives of an untiled all_to_all from one dimension to another has not the shape of the argument:
// its rule keeps a dimension of size 1 that it should sum over, and sums over the one in its place. What is left can be
// compared.
torch::Tensor as_jax_sums(const torch::Tensor& gradient, std::int64_t split, std::int64_t concat) {
  const std::int64_t kept = split < concat ? split + 1 : split;
  const std::int64_t summed = split < concat ? concat + 1 : concat;
  return gradient.unsqueeze(1 + kept).sum(1 + summed);
}

TEST(RecordedCollectives, AgreeWithJaxInValuesAndGradients) {
  const auto file = cases::load("jax/collectives.json");
  std::map<std::string, int> checked;
  for (const auto& c : file.at("cases")) {
    const std::string op = c["op"];
    const int devices = c["devices"];
    SCOPED_TRACE(op + " on " + std::to_string(devices) + " devices, " + c["args"].dump());
    const Body body = body_of(op, c["args"]);
    ASSERT_TRUE(body) << "an operation that this test does not know";
    const bool exact = op.find("pmean") == std::string::npos || std::has_single_bit(static_cast<unsigned>(devices));
    const torch::Tensor x = cases::tensor_of(c["in"]);
    const auto f = pmap(body, {.axis_name = "i"});
    expect_equal(f(x).stack(), cases::tensor_of(c["out"]), exact ? Agreement::kExact : Agreement::kOneUnit);
    if (c.contains("grad")) {
      const torch::Tensor w = cases::tensor_of(c["cotangent"]);
      const torch::Tensor recorded = cases::tensor_of(c["grad"]);
      torch::Tensor ours = grad([&](const torch::Tensor& v) { return (f(v).stack() * w).sum(); })(x);
      EXPECT_EQ(ours.sizes(), x.sizes());
      if (op == "all_to_all" && recorded.sizes() != x.sizes()) {
        ours = as_jax_sums(ours, c["args"]["split"], c["args"]["concat"]);
      }
      expect_equal(ours, recorded, exact ? Agreement::kExact : Agreement::kRoundedTerms);
    }
    ++checked[op];
  }
  EXPECT_GE(checked.size(), 17U);
}

}  // namespace recorded_collectives_test
}  // namespace brigade
