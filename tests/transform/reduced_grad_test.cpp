// value_and_grad with a reduction over the devices, against the same written out.
#include "brigade/transform/reduced_grad.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/custom_function.h>

#include "brigade/brigade.h"
#include "support/nine_devices.h"

namespace brigade {
namespace reduced_grad_test {

using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

struct Mlp {
  std::vector<torch::Tensor> w;
  torch::Tensor b;
  double slope = 0.1;
};

Mlp mlp_of(at::ScalarType dtype = torch::kFloat) {
  // 300 x 300 floats fill a bucket alone; the others share some.
  const auto draw = [&](std::vector<std::int64_t> shape) {
    return torch::randn(shape, torch::kDouble).mul(0.1).to(dtype);
  };
  return {{draw({20, 300}), draw({300, 300}), draw({300, 300}), draw({300, 5})}, draw({300})};
}

torch::Tensor loss_of(const Mlp& p, const torch::Tensor& x) {
  torch::Tensor h = x;
  for (std::size_t i = 0; i + 1 < p.w.size(); ++i) h = torch::tanh(torch::matmul(h, p.w[i]) + p.slope * p.b);
  return torch::matmul(h, p.w.back()).square().mean();
}

void expect_same_bits(const torch::Tensor& a, const torch::Tensor& b) {
  ASSERT_EQ(a.scalar_type(), b.scalar_type());
  ASSERT_EQ(a.sizes(), b.sizes());
  EXPECT_TRUE(torch::equal(a, b));  // no NaN, and signs of zeros are compared below
  EXPECT_TRUE(torch::equal(torch::signbit(torch::real(a)), torch::signbit(torch::real(b))));
}

template <class T>
void expect_same_bits(const Sharded<T>& a, const Sharded<T>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::int64_t i = 0; i < a.size(); ++i) {
    const auto x = tree::flatten(a[i]), y = tree::flatten(b[i]);
    ASSERT_EQ(x.size(), y.size());
    for (std::size_t k = 0; k < x.size(); ++k) expect_same_bits(x[k], y[k]);
  }
}

// f and its arguments with the reduction inside, and with lax::pmean or lax::psum afterwards.
template <class F, class... Args>
void expect_as_written_out(F f, const Args&... args) {
  const auto inside = [&](auto reduction) {
    return pmap(
        [=](auto... own) {
          auto [loss, grads] = value_and_grad(f, reduction)(own...);
          return std::tuple(loss, grads);
        },
        {.axis_name = "i"})(args...);
  };
  const auto mean = pmap(
      [&](auto... own) {
        const auto [loss, grads] = value_and_grad(f)(own...);
        return std::tuple(lax::pmean(loss, "i"), lax::pmean(grads, "i"));
      },
      {.axis_name = "i"})(args...);
  expect_same_bits(inside(lax::reduce_mean("i")), mean);
  const auto sum = pmap(
      [&](auto... own) {
        const auto [loss, grads] = value_and_grad(f)(own...);
        return std::tuple(lax::psum(loss, "i"), lax::psum(grads, "i"));
      },
      {.axis_name = "i"})(args...);
  expect_same_bits(inside(lax::reduce_sum("i")), sum);
}

TEST(ReducedGrad, HasTheBitsOfPmeanAndPsumAfterwardsOnAnyNumberOfDevices) {
  for (const int n : {1, 2, 3, 5, 9}) {
    SCOPED_TRACE(n);
    const std::vector<Device> some(devices().begin(), devices().begin() + n);
    expect_as_written_out(loss_of, replicate(mlp_of(), some), torch::randn({n, 4, 20}));
  }
}

TEST(ReducedGrad, EqualsTheGradientOfTheWholeBatch) {
  const Mlp p = mlp_of(torch::kDouble);
  const torch::Tensor x = torch::randn({4, 3, 20}, torch::kDouble);
  const auto f =
      pmap([](Mlp own, torch::Tensor rows) { return value_and_grad(loss_of, lax::reduce_mean("i"))(own, rows); },
           {.axis_name = "i", .in_axes = {none, 0}});
  const auto [loss, grads] = f(p, x).unreplicate();
  const auto [expected_loss, expected] = value_and_grad(loss_of)(p, x.reshape({12, 20}));
  EXPECT_TRUE(torch::allclose(loss, expected_loss));
  for (std::size_t i = 0; i < p.w.size(); ++i) EXPECT_TRUE(torch::allclose(grads.w[i], expected.w[i]));
  EXPECT_TRUE(torch::allclose(grads.b, expected.b));
  EXPECT_EQ(grads.slope, 0);
}

TEST(ReducedGrad, OfOtherDtypesHasTheBitsWrittenOut) {
  for (const at::ScalarType dtype : {torch::kDouble, torch::kBFloat16}) {
    SCOPED_TRACE(c10::toString(dtype));
    const std::vector<Device> some(devices().begin(), devices().begin() + 3);
    expect_as_written_out(loss_of, replicate(mlp_of(dtype), some), torch::randn({3, 4, 20}).to(dtype));
  }
  const auto modulus = [](const torch::Tensor& z, const torch::Tensor& half) {
    return (z * z.conj()).abs().sum() + half.to(torch::kFloat).sum();
  };
  expect_as_written_out(modulus, torch::randn({3, 5}, torch::kComplexFloat), torch::ones({3, 2}, torch::kHalf));
  const auto half = [](const torch::Tensor& h) { return (h.to(torch::kFloat) * 1.1).square().sum(); };
  expect_as_written_out(half, torch::randn({3, 50}).to(torch::kHalf));
}

TEST(ReducedGrad, TakesEachGradientOnceHoweverOftenAndWhereverItsLeafIsUsed) {
  const auto f = [](const std::pair<torch::Tensor, torch::Tensor>& p, const torch::Tensor& x) {
    const torch::Tensor early = p.first * x, late = (p.first + p.second) * early.sin();
    return (late * p.first).sum() + p.second.sum() + (p.first.t() + p.first.expand({2, 4, 4})).sum();
  };
  const std::pair at(torch::randn({3, 4, 4}), torch::randn({3, 4, 4}));
  expect_as_written_out(f, at, torch::randn({3, 4, 4}));
}

TEST(ReducedGrad, SharesNoMemoryBetweenGradientsThatAreOne) {
  // d(a + b) hands one tensor to both.
  const auto f = [](const std::pair<torch::Tensor, torch::Tensor>& p, const torch::Tensor& x) {
    return ((p.first + p.second) * x).sum();
  };
  const std::pair at(torch::randn({4, 6}), torch::randn({4, 6}));
  const torch::Tensor x = torch::randn({4, 6});
  expect_as_written_out(f, at, x);
  const auto out = pmap([&](auto p, torch::Tensor t) { return value_and_grad(f, lax::reduce_sum("i"))(p, t).second; },
                        {.axis_name = "i"})(at, x);
  EXPECT_NE(out[0].first.data_ptr(), out[0].second.data_ptr());
}

TEST(ReducedGrad, CountsALeafWithoutAGradientAsZeros) {
  const auto f = [](const std::vector<torch::Tensor>& p, const torch::Tensor& x) {
    // Each device uses other leaves; nobody uses the last.
    return (p[static_cast<std::size_t>(lax::axis_index("i"))] * x).sum();
  };
  std::vector<torch::Tensor> leaves;
  for (int i = 0; i < 5; ++i) leaves.push_back(torch::ones({4, 300, 300}) * i);
  const torch::Tensor x = torch::arange(1, 5, torch::kFloat);
  const auto out = pmap([&](auto p, torch::Tensor t) { return value_and_grad(f, lax::reduce_sum("i"))(p, t); },
                        {.axis_name = "i"})(leaves, x);
  for (std::int64_t device = 0; device < 4; ++device) {
    const auto& grads = out[device].second;
    for (int leaf = 0; leaf < 4; ++leaf) {
      EXPECT_TRUE(torch::equal(grads[leaf], torch::full({300, 300}, float(leaf + 1)))) << leaf;
    }
    EXPECT_TRUE(torch::equal(grads[4], torch::zeros({300, 300})));
  }
}

TEST(ReducedGrad, OfALossThatDependsOnNothingIsZero) {
  const auto f = [](const torch::Tensor&, const torch::Tensor& x) { return x.sum(); };
  const auto out = pmap([&](auto p, torch::Tensor t) { return value_and_grad(f, lax::reduce_mean("i"))(p, t); },
                        {.axis_name = "i"})(torch::ones({3, 2}), torch::arange(3, torch::kFloat));
  EXPECT_EQ(out[1].first.item<float>(), 1);
  EXPECT_TRUE(torch::equal(out[1].second, torch::zeros({2})));
}

TEST(ReducedGrad, ReducesTheLossAndLeavesAuxiliaryResultsAlone) {
  const auto f = [](const torch::Tensor& p, const torch::Tensor& x) { return std::pair((p * x).sum(), 10 * x); };
  const auto out = pmap([&](auto p, torch::Tensor t) { return value_and_grad(f, lax::reduce_mean("i"))(p, t); },
                        {.axis_name = "i"})(torch::ones({4, 1}), torch::arange(4, torch::kFloat).reshape({4, 1}));
  EXPECT_EQ(out[3].first.first.item<float>(), 1.5F);
  EXPECT_EQ(out[3].first.second.item<float>(), 30);
  EXPECT_FALSE(out[3].first.second.requires_grad());
  EXPECT_EQ(out[0].second.item<float>(), 1.5F);
}

TEST(ReducedGrad, GoesTogetherWithCollectivesInTheFunction) {
  const auto f = [](const Mlp& p, const torch::Tensor& x) {
    const torch::Tensor centred = x - lax::pmean(x, "i");
    const torch::Tensor norm = lax::psum(torch::matmul(centred, p.w[0]).square(), "i");
    // Devices differ in what else they compute.
    torch::Tensor extra = p.b.sum();
    for (std::int64_t i = 0; i < lax::axis_index("i"); ++i) extra = extra.sin() * p.w[0].sum().cos();
    return loss_of(p, centred) + norm.mean() + extra;
  };
  const std::vector<Device> some(devices().begin(), devices().begin() + 4);
  expect_as_written_out(f, replicate(mlp_of(), some), torch::randn({4, 3, 20}));
}

// Identity whose backward calls a function.
struct AtBackward : torch::autograd::Function<AtBackward> {
  static torch::Tensor forward(torch::autograd::AutogradContext* context, const torch::Tensor& x,
                               const std::function<void()>* call) {
    context->saved_data["call"] = reinterpret_cast<std::int64_t>(call);
    return x.view_as(x);
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list cotangents) {
    (*reinterpret_cast<const std::function<void()>*>(context->saved_data["call"].toInt()))();
    return {cotangents[0], torch::Tensor()};
  }
};

TEST(ReducedGrad, StartsToReduceBeforeBackwardHasEnded) {
  // When backward reaches the first layer, the buckets of the last two are on their way.
  std::array<std::int64_t, 3> started{};
  const auto f = pmap(
      [&](Mlp p, torch::Tensor x) {
        const AxisPlace place = find_axis("i", std::source_location::current());
        const std::int64_t before = place.group().statistics().calls;
        const std::function<void()> look = [&] {
          started[static_cast<std::size_t>(place.position)] = place.group().statistics().calls - before;
        };
        return value_and_grad(
                   [&](const Mlp& q, const torch::Tensor& rows) {
                     Mlp watched = q;
                     watched.w[0] = AtBackward::apply(q.w[0], &look);
                     return loss_of(watched, rows);
                   },
                   lax::reduce_mean("i"))(p, x)
            .second;
      },
      {.axis_name = "i"});
  f(replicate(mlp_of(), {devices()[0], devices()[1], devices()[2]}), torch::randn({3, 4, 20}));
  for (const std::int64_t count : started) EXPECT_GE(count, 1);
}

TEST(ReducedGrad, AnExceptionInBackwardReleasesAllAndTheNextCallWorks) {
  const auto f = pmap(
      [](Mlp p, torch::Tensor x, int thrower) {
        const std::function<void()> fail = [&] {
          if (lax::axis_index("i") == thrower) throw std::out_of_range("in backward");
        };
        return value_and_grad(
                   [&](const Mlp& q, const torch::Tensor& rows) {
                     Mlp watched = q;
                     watched.w[0] = AtBackward::apply(q.w[0], &fail);
                     return loss_of(watched, rows);
                   },
                   lax::reduce_mean("i"))(p, x)
            .second;
      },
      {.axis_name = "i"});
  const std::vector<Device> some(devices().begin(), devices().begin() + 5);
  const auto p = replicate(mlp_of(), some);
  const torch::Tensor x = torch::randn({5, 4, 20});
  for (int round = 0; round < 20; ++round) {
    EXPECT_THAT([&] { f(p, x, round % 5); }, ThrowsMessage<std::out_of_range>(HasSubstr("in backward")));
    EXPECT_EQ(last_failure()->failures.size(), 1U);
    EXPECT_EQ(last_failure()->failures[0].position, round % 5);
    EXPECT_NO_THROW(f(p, x, -1));
  }
}

TEST(ReducedGrad, DevicesThatDifferInTheirLeavesAreToldSo) {
  const auto f = pmap(
      [](torch::Tensor x) {
        const auto n = static_cast<std::size_t>(1 + lax::axis_index("i"));
        const auto sum = [](const std::vector<torch::Tensor>& p) { return p[0].sum(); };
        return value_and_grad(sum, lax::reduce_mean("i"))(std::vector<torch::Tensor>(n, x)).first;
      },
      {.axis_name = "i"});
  EXPECT_THAT(
      [&] {
        f(torch::ones({2, 3}));
      },
      ThrowsMessage<CollectiveMismatch>(
          AllOf(HasSubstr("reduce_mean, bucket 0"), HasSubstr("reduced_grad_test.cpp:"))));
}

TEST(ReducedGrad, DevicesThatDifferInTheShapeOfALeafAreToldWhich) {
  struct Parameters {
    torch::Tensor scale;
    std::vector<torch::Tensor> layers;
  };
  const auto f = pmap(
      [](torch::Tensor x) {
        const Parameters p = {x, {x, torch::ones(2 + lax::axis_index("i")), x}};
        const auto sum = [](const Parameters& of) {
          return of.scale.sum() + of.layers[0].sum() + of.layers[1].sum() + of.layers[2].sum();
        };
        return value_and_grad(sum, lax::reduce_mean("i"))(p).first;
      },
      {.axis_name = "i"});
  EXPECT_THAT(
      [&] {
        f(torch::ones({2, 3}));
      },
      ThrowsMessage<CollectiveMismatch>(AllOf(HasSubstr("reduce_mean, bucket 0"), HasSubstr("argument layers[1]"),
                                              HasSubstr("[2]"), HasSubstr("[3]"))));
}

TEST(ReducedGrad, HasNoSecondDerivativeAndSaysWhatHas) {
  const auto refuses = [](auto call) {
    EXPECT_THAT(call, ThrowsMessage<InvalidArgument>(
                          AllOf(HasSubstr("has a first derivative only"), HasSubstr("lax::pmean(grad(f)(...))"),
                                HasSubstr("axis \"i\""), HasSubstr("reduced_grad_test.cpp:"))));
  };
  const auto f = pmap(
      [](torch::Tensor x) {
        return value_and_grad([](const torch::Tensor& t) { return t.pow(3).sum(); }, lax::reduce_mean("i"))(x).second;
      },
      {.axis_name = "i"});
  const torch::Tensor x = torch::ones({3, 2});
  refuses([&] { f(x.clone().requires_grad_()); });
  refuses([&] { grad([&](const torch::Tensor& v) { return f(v).stack().sum(); })(x); });
  const at::NoGradGuard off;
  EXPECT_TRUE(torch::equal(f(x.clone().requires_grad_())[0], torch::full({2}, 3.0F)));
}

TEST(ReducedGrad, RefusesWhatHasNoDerivativeAndAnUnknownAxis) {
  const auto with = [](auto body) { return pmap(body, {.axis_name = "i"}); };
  EXPECT_THAT(
      [&] {
        with([](torch::Tensor x) {
          return value_and_grad([](const torch::Tensor& t) { return t * 2; }, lax::reduce_mean("i"))(x).second;
        })(torch::ones({3, 2}));
      },
      ThrowsMessage<ShapeError>(HasSubstr("returns a scalar")));
  EXPECT_THAT(
      [&] {
        with([](torch::Tensor x) {
          return value_and_grad([](const torch::Tensor& t) { return t.sum(); }, lax::reduce_mean("j"))(x).second;
        })(torch::ones({3, 2}));
      },
      ThrowsMessage<AxisError>(AllOf(HasSubstr("axis \"j\" is not in scope"), HasSubstr("reduced_grad_test.cpp:"))));
  EXPECT_THROW(value_and_grad([](const torch::Tensor& t) { return t.sum(); }, lax::reduce_mean("i"))(torch::ones({2})),
               AxisError);
}

TEST(ReducedGrad, AGraphThatOutlivesTheCallIsNotDifferentiatedAgain) {
  std::vector<torch::Tensor> kept(2);
  pmap(
      [&](torch::Tensor x) {
        value_and_grad(
            [&](const torch::Tensor& t) {
              const torch::Tensor loss = t.sum();
              kept[static_cast<std::size_t>(lax::axis_index("i"))] = loss;
              return loss;
            },
            lax::reduce_mean("i"))(x);
      },
      {.axis_name = "i"})(torch::ones({2, 3}));
  EXPECT_THAT([&] { kept[0].backward(); }, ThrowsMessage<Error>(HasSubstr("which has ended")));
}

}  // namespace reduced_grad_test
}  // namespace brigade
