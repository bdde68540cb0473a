// Gradients inside bodies, through collectives, and through pmap itself.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <optional>
#include <random>
#include <thread>

#include "brigade/brigade.h"
#include "support/nine_devices.h"

namespace brigade {
namespace pmap_gradient_test {

torch::Tensor draw(std::vector<std::int64_t> shape) { return torch::randn(shape, torch::kDouble); }

// The gradient by central differences, one element at a time.
template <class F>
torch::Tensor numeric_grad(F f, const torch::Tensor& x) {
  constexpr double kStep = 1e-6;
  torch::Tensor g = torch::empty_like(x);
  for (std::int64_t i = 0; i < x.numel(); ++i) {
    torch::Tensor up = x.clone(), down = x.clone();
    up.view(-1)[i] += kStep;
    down.view(-1)[i] -= kStep;
    g.view(-1)[i] = (f(up) - f(down)) / (2 * kStep);
  }
  return g;
}

// First and second derivatives of the scalar function f at x, against differences.
template <class F>
void check_derivatives(F f, const torch::Tensor& x) {
  EXPECT_TRUE(torch::allclose(grad(f)(x), numeric_grad(f, x), 1e-5, 1e-6)) << grad(f)(x) << numeric_grad(f, x);
  const torch::Tensor direction = draw(x.sizes().vec());
  const auto slope = [&](const torch::Tensor& at) { return (grad(f)(at) * direction).sum(); };
  EXPECT_TRUE(torch::allclose(grad(slope)(x), numeric_grad(slope, x), 1e-5, 1e-5))
      << grad(slope)(x) << numeric_grad(slope, x);
}

template <class T>
torch::Tensor total(const Sharded<T>& out) {
  torch::Tensor sum = torch::zeros({}, torch::kDouble);
  for (const auto& value : out) sum = sum + value.sum();
  return sum;
}

TEST(PmapGradient, OfTheSumOfSinesIsCosines) {
  const torch::Tensor x = draw({5, 3});
  const auto f = pmap([](torch::Tensor t) { return t.sin(); });
  EXPECT_TRUE(torch::allclose(grad([&](const torch::Tensor& v) { return f(v).stack().sum(); })(x), x.cos()));
}

TEST(PmapGradient, ReachesASplitAWholeAndAShardedArgument) {
  const torch::Tensor a = draw({2, 4, 3}), c = draw({2, 3});
  const Sharded<torch::Tensor> s({draw({3}), draw({3}), draw({3}), draw({3})});
  const auto f = pmap([](torch::Tensor x, torch::Tensor y, torch::Tensor z) { return (x * y).square() * z; },
                      {.in_axes = {1, none, 0}});
  const auto plain = [&](const torch::Tensor& x, const torch::Tensor& y) {
    torch::Tensor sum = torch::zeros({}, torch::kDouble);
    for (int i = 0; i < 4; ++i) sum = sum + ((x.select(1, i) * y).square() * s[i]).sum();
    return sum;
  };
  EXPECT_TRUE(torch::allclose(grad([&](const torch::Tensor& x) { return total(f(x, c, s)); })(a),
                              grad([&](const torch::Tensor& x) { return plain(x, c); })(a)));
  EXPECT_TRUE(torch::allclose(grad([&](const torch::Tensor& y) { return total(f(a, y, s)); })(c),
                              grad([&](const torch::Tensor& y) { return plain(a, y); })(c)));
  std::vector<torch::Tensor> own;
  for (const auto& t : s) own.push_back(t.clone().requires_grad_());
  total(f(a, c, Sharded<torch::Tensor>(own))).backward();
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(torch::allclose(own[i].grad(), (a.select(1, i) * c).square().sum(0)));
}

TEST(PmapGradient, OfOneDevicesResultAloneStillMeetsInBackward) {
  const torch::Tensor x = draw({4, 2});
  const auto f = pmap([](torch::Tensor t) { return lax::psum(t.square(), "i"); }, {.axis_name = "i"});
  const torch::Tensor g = grad([&](const torch::Tensor& v) { return f(v)[2].sum(); })(x);
  EXPECT_TRUE(torch::allclose(g, 2 * x));
}

TEST(PmapGradient, FirstAndSecondOrderThroughPsumAndPmean) {
  const auto f = pmap([](torch::Tensor t) { return lax::psum(t.pow(3), "i") * t + lax::pmean(t, "i").square(); },
                      {.axis_name = "i"});
  check_derivatives([&](const torch::Tensor& v) { return total(f(v)); }, draw({3, 2}));
}

TEST(PmapGradient, FirstAndSecondOrderThroughAllGatherPlainAndTiled) {
  const auto f = pmap(
      [](torch::Tensor t) {
        return lax::all_gather(t.square(), "i", {.axis = 1}).pow(2) *
               lax::all_gather(t, "i", {.axis = -1, .tiled = true}).sum();
      },
      {.axis_name = "i"});
  check_derivatives([&](const torch::Tensor& v) { return total(f(v)); }, draw({3, 2, 2}));
}

TEST(PmapGradient, FirstAndSecondOrderForInAxesNoneAndNegative) {
  const torch::Tensor other = draw({2, 3});
  const auto f = pmap([](torch::Tensor x, torch::Tensor w) { return (x * w).sin() * lax::psum(x * w, "i"); },
                      {.axis_name = "i", .in_axes = {-1, none}});
  check_derivatives([&](const torch::Tensor& w) { return total(f(other, w)); }, draw({2}));
  const torch::Tensor w = draw({2});
  check_derivatives([&](const torch::Tensor& x) { return total(f(x, w)); }, other);
}

// Slice i of N for a choice of in_axes, and the shape of a whole argument whose slices are (2, 3).
torch::Tensor slice(const torch::Tensor& whole, std::optional<int> axis, std::int64_t i) {
  return axis ? whole.select(*axis, i) : whole;
}
torch::Tensor whole_of(std::optional<int> axis, std::int64_t n) {
  std::vector<std::int64_t> shape = {2, 3};
  if (axis) shape.insert(*axis < 0 ? shape.end() + *axis + 1 : shape.begin() + *axis, n);
  return draw(shape);
}

TEST(PmapGradient, FirstAndSecondOrderForEveryFormOfInAxesAndOutAxesEqualTheLoopOverSlices) {
  constexpr std::int64_t kN = 3;
  const auto axes_of = [](std::optional<int> axis) { return axis ? Axes(*axis) : Axes(none); };
  const std::vector<std::optional<int>> choices = {0, 1, 2, -1, -3, std::nullopt};
  int forms = 0;
  for (const auto x_axis : choices) {
    for (const auto w_axis : choices) {
      const std::optional<int> out_axis = choices[static_cast<std::size_t>(forms) % 5];
      if (!x_axis && !w_axis) continue;
      SCOPED_TRACE(testing::Message() << "form " << forms++);
      const auto f = pmap(
          [](torch::Tensor x, torch::Tensor w) {
            const torch::Tensor sum = lax::psum((x * w).sin(), "i");
            return std::pair(x.square() * sum, sum);
          },
          {.axis_name = "i",
           .in_axes = {axes_of(x_axis), axes_of(w_axis)},
           .out_axes = {axes_of(out_axis), none},
           .axis_size = kN});
      const torch::Tensor x = whole_of(x_axis, kN), w = whole_of(w_axis, kN);
      const torch::Tensor weights = torch::randn_like(f(x, w).stack().first);
      const auto mapped = [&](const torch::Tensor& at_x, const torch::Tensor& at_w) {
        const auto [each, sum] = f(at_x, at_w).stack();
        return (each * weights).sum() + sum.pow(3).sum();
      };
      const auto loop = [&](const torch::Tensor& at_x, const torch::Tensor& at_w) {
        torch::Tensor sum = torch::zeros({2, 3}, torch::kDouble);
        for (std::int64_t i = 0; i < kN; ++i) sum = sum + (slice(at_x, x_axis, i) * slice(at_w, w_axis, i)).sin();
        std::vector<torch::Tensor> each;
        for (std::int64_t i = 0; i < kN; ++i) each.push_back(slice(at_x, x_axis, i).square() * sum);
        return (torch::stack(each, *out_axis) * weights).sum() + sum.pow(3).sum();
      };
      using Two = std::pair<torch::Tensor, torch::Tensor>;
      const auto gradient = [](const auto& function) {
        return grad([&function](const Two& at) { return function(at.first, at.second); });
      };
      const Two at(x, w), direction(torch::randn_like(x), torch::randn_like(w));
      const auto second = [&](const auto& function) {
        return grad([&](const Two& t) {
          const Two g = gradient(function)(t);
          return (g.first * direction.first).sum() + (g.second * direction.second).sum();
        })(at);
      };
      const Two g = gradient(mapped)(at), expected = gradient(loop)(at);
      EXPECT_TRUE(torch::allclose(g.first, expected.first) && torch::allclose(g.second, expected.second));
      const Two h = second(mapped), expected_h = second(loop);
      EXPECT_TRUE(torch::allclose(h.first, expected_h.first) && torch::allclose(h.second, expected_h.second));
    }
  }
  EXPECT_EQ(forms, 35);
}

TEST(PmapGradient, OfThreeArgumentsEachAlongItsOwnAxisEqualsTheLoopOverSlices) {
  constexpr std::int64_t kN = 3;
  const auto f = pmap([](torch::Tensor a, torch::Tensor b, torch::Tensor c) { return (a * b).sin() + a * c.exp(); },
                      {.in_axes = {1, 2, none}});
  struct Arguments {
    torch::Tensor a, b, c;
  };
  const Arguments at{draw({2, kN, 4}), draw({2, 4, kN}), draw({2, 4})};
  const torch::Tensor weights = draw({kN, 2, 4});
  const Arguments g = grad([&](const Arguments& t) { return (f(t.a, t.b, t.c).stack() * weights).sum(); })(at);
  const Arguments expected = grad([&](const Arguments& t) {
    std::vector<torch::Tensor> each;
    for (std::int64_t i = 0; i < kN; ++i) {
      const torch::Tensor a = t.a.select(1, i);
      each.push_back((a * t.b.select(2, i)).sin() + a * t.c.exp());
    }
    return (torch::stack(each) * weights).sum();
  })(at);
  EXPECT_TRUE(torch::allclose(g.a, expected.a) && torch::allclose(g.b, expected.b) && torch::allclose(g.c, expected.c));
}

TEST(PmapGradient, FollowsATreePrefixOfInAxes) {
  struct Model {
    torch::Tensor w;
    std::pair<torch::Tensor, torch::Tensor> rest;
  };
  const auto f = pmap([](Model m, torch::Tensor x) { return (m.w * x + m.rest.first).sin() * m.rest.second; },
                      {.in_axes = {{none, {1, 0}}, -1}});
  const Model m{draw({2}), {draw({2, 3}), draw({3, 2})}};
  const torch::Tensor x = draw({2, 3});
  const Model g = grad([&](const Model& at) { return total(f(at, x)); })(m);
  const Model expected = grad([&](const Model& at) {
    torch::Tensor sum = torch::zeros({}, torch::kDouble);
    for (int i = 0; i < 3; ++i) {
      sum = sum + ((at.w * x.select(1, i) + at.rest.first.select(1, i)).sin() * at.rest.second[i]).sum();
    }
    return sum;
  })(m);
  EXPECT_TRUE(torch::allclose(g.w, expected.w));
  EXPECT_TRUE(torch::allclose(g.rest.first, expected.rest.first));
  EXPECT_TRUE(torch::allclose(g.rest.second, expected.rest.second));
}

TEST(PmapGradient, SecondOrderOfATreePrefixAndOfASharded) {
  using Two = std::pair<torch::Tensor, torch::Tensor>;
  const Sharded<torch::Tensor> z({draw({2}), draw({2}), draw({2})});
  const auto f =
      pmap([](Two t, torch::Tensor own) { return (t.first * t.second).sin() * lax::psum(t.first * own, "i"); },
           {.axis_name = "i", .in_axes = {{1, none}, 0}});
  const torch::Tensor x = draw({2, 3}), w = draw({2});
  check_derivatives([&](const torch::Tensor& v) { return total(f(Two(v, w), z)); }, x);
  check_derivatives([&](const torch::Tensor& v) { return total(f(Two(x, v), z)); }, w);
  const auto g = pmap([](torch::Tensor t) { return t.pow(3) * lax::psum(t.square(), "i"); }, {.axis_name = "i"});
  check_derivatives([&](const torch::Tensor& v) { return total(g(Sharded<torch::Tensor>(v.unbind()))); }, draw({4, 3}));
}

TEST(PmapGradient, FirstAndSecondOrderOverTheAxesOfAMesh) {
  const auto f = pmap(
      [](torch::Tensor t) {
        const torch::Tensor row = lax::psum(t.pow(3), "device"), column = lax::pmean(t * row, "host");
        return lax::all_gather(column.sin(), {"device", "host"}).sum(0) * t;
      },
      {.mesh = Mesh{{"host", 2}, {"device", 2}}});
  check_derivatives([&](const torch::Tensor& v) { return total(f(v)); }, draw({4, 2}));
}

TEST(PmapGradient, OfWhatIsReturnedOnceGoesToDeviceZero) {
  const auto f = pmap([](torch::Tensor x) { return x * 2; }, {.out_axes = none});
  const torch::Tensor x = torch::ones({3, 2}, torch::kDouble);
  torch::Tensor expected = torch::zeros({3, 2}, torch::kDouble);
  expected[0] = 2;
  EXPECT_TRUE(torch::equal(grad([&](const torch::Tensor& v) { return f(v).unreplicate().sum(); })(x), expected));
  EXPECT_TRUE(torch::equal(grad([&](const torch::Tensor& v) { return f(v).stack().sum(); })(x), expected));
}

TEST(PmapGradient, OfAGradientTakenInsideTheBody) {
  const auto f = pmap(
      [](torch::Tensor t) { return grad([](const torch::Tensor& v) { return lax::pmean(v.pow(3), "i").sum(); })(t); },
      {.axis_name = "i"});
  check_derivatives([&](const torch::Tensor& v) { return total(f(v)); }, draw({3, 2}));
}

TEST(PmapGradient, OfPsumLossInsideTheBodyIsTheTransposeAsInJax) {
  const torch::Tensor x = draw({4, 2});
  const auto f = pmap(
      [](torch::Tensor t) { return grad([](const torch::Tensor& v) { return lax::psum(v.square().sum(), "i"); })(t); },
      {.axis_name = "i"});
  EXPECT_TRUE(torch::allclose(f(x).stack(), 4 * 2 * x));  // N times the local gradient
}

TEST(PmapGradient, OfAGradientOfAGradientInsideTheBody) {
  // The devices' losses are S v_i with S = sum of v_j^2, all told S V with V = sum of v_j. Its gradient is 2 v_k V + S, and
  // the sum of that over k is 2 V^2 + N S, with gradient 4 V + 2 N v_k.
  const auto f = pmap(
      [](torch::Tensor t) {
        const auto loss = [](const torch::Tensor& v) { return (lax::psum(v.square(), "i") * v).sum(); };
        return grad([&](const torch::Tensor& v) { return grad(loss)(v).sum(); })(t);
      },
      {.axis_name = "i"});
  const torch::Tensor x = draw({4, 2});
  EXPECT_TRUE(torch::allclose(f(x).stack(), 4 * x.sum(0) + 2 * 4 * x));
  // And the third derivative, from outside.
  EXPECT_TRUE(torch::allclose(grad([&](const torch::Tensor& v) { return total(f(v)); })(x), torch::full_like(x, 24)));
}

// Nodes of a graph over t, of which each device draws others. Their values are small, and count nothing.
torch::Tensor unrelated(const torch::Tensor& t, std::mt19937& draw) {
  std::vector<torch::Tensor> pool = {t};
  for (auto nodes = draw() % 30; nodes > 0; --nodes) {
    const torch::Tensor &a = pool[draw() % pool.size()], &b = pool[draw() % pool.size()];
    pool.push_back(draw() % 3 == 0 ? a.sin() : draw() % 2 == 0 ? a.tanh() * b.cos() : (a + b) / 2);
  }
  return 0 * pool[draw() % pool.size()] + 0 * pool.back();
}

TEST(PmapGradient, DoesNotDependOnUnrelatedNodesOfSomeDevices) {
  const torch::Tensor x = draw({4, 2}), direction = draw({4, 2});
  const auto derivatives = [&](std::optional<unsigned> seed) {
    const auto f = pmap(
        [seed](torch::Tensor t) {
          std::mt19937 own(16 * seed.value_or(0) + static_cast<unsigned>(lax::axis_index("i")));
          const auto beside = [&](const torch::Tensor& v) {
            return seed ? v + unrelated(t, own) + unrelated(v, own) : v;
          };
          const torch::Tensor first = lax::psum(beside(t.square()), "i");
          const torch::Tensor second = lax::pmean(beside(t.pow(3) * first), "i");
          const torch::Tensor third = lax::psum(beside(t.sin()), "i");
          return beside(lax::all_gather(beside(second * third), "i").sum(0) * t);
        },
        {.axis_name = "i"});
    const auto gradient = grad([&](const torch::Tensor& v) { return total(f(v)); });
    const auto slope = [&](const torch::Tensor& v) { return (gradient(v) * direction).sum(); };
    return std::pair(gradient(x), grad(slope)(x));
  };
  const auto [first, second] = derivatives(std::nullopt);
  for (unsigned seed = 0; seed < 25; ++seed) {
    SCOPED_TRACE(seed);
    const auto [g, h] = derivatives(seed);
    EXPECT_TRUE(torch::allclose(g, first)) << g << first;
    EXPECT_TRUE(torch::allclose(h, second)) << h << second;
  }
}

TEST(PmapGradient, SecondOrderBesideIntegerResults) {
  const auto f = pmap([](torch::Tensor t) { return std::pair(t.pow(3), t > 0); });
  const auto loss = [&](const torch::Tensor& v) {
    torch::Tensor sum = torch::zeros({}, torch::kDouble);
    for (const auto& [cube, positive] : f(v)) sum = sum + (cube * positive).sum();
    return sum;
  };
  const torch::Tensor x = torch::tensor({1.0, -2.0, 3.0}, torch::kDouble).reshape({3, 1});
  const auto slope = [&](const torch::Tensor& v) { return grad(loss)(v).sum(); };
  EXPECT_TRUE(torch::allclose(grad(slope)(x), 6 * x * (x > 0)));
}

TEST(PmapGradient, SecondOrderWhereOnlySomeDevicesDifferentiate) {
  const auto f =
      pmap([](torch::Tensor t) { return lax::axis_index("i") == 0 ? t.detach() : t.pow(3); }, {.axis_name = "i"});
  const auto loss = [&](const torch::Tensor& v) { return f(v).stack().square().sum(); };
  const torch::Tensor x = torch::tensor({2.0, 3.0}, torch::kDouble).reshape({2, 1});
  const auto slope = [&](const torch::Tensor& v) { return grad(loss)(v).sum(); };
  // d^2/dt^2 of t^6 is 30 t^4.
  EXPECT_TRUE(torch::allclose(grad(slope)(x), torch::tensor({0.0, 30.0 * 81}, torch::kDouble).reshape({2, 1})));
}

TEST(PmapGradient, SecondOrderFromAThreadThatHasRecordedLessThanTheForwardPass) {
  // Of what is ready, autograd runs the latest first, by numbers that each thread counts for itself. Those that device 0
  // gives to the first backward must be above those of its forward pass all the same.
  const auto f = pmap(
      [](torch::Tensor t) {
        const torch::Tensor product = lax::psum(t.square(), "i") * lax::psum(t.pow(3), "i");
        return product + lax::psum(t.sin(), "i").square();
      },
      {.axis_name = "i"});
  const torch::Tensor x = draw({3, 2}).requires_grad_(), direction = draw({3, 2});
  for (int i = 0; i < 1000; ++i) x.sin();
  const torch::Tensor loss = total(f(x));
  const auto second = [&] {
    const torch::Tensor g = torch::autograd::grad({loss}, {x}, {}, /*retain_graph=*/true, /*create_graph=*/true)[0];
    return torch::autograd::grad({(g * direction).sum()}, {x}, {}, /*retain_graph=*/true)[0];
  };
  const torch::Tensor expected = second();
  torch::Tensor elsewhere;
  std::thread([&] { elsewhere = second(); }).join();
  EXPECT_TRUE(torch::allclose(elsewhere, expected)) << elsewhere << expected;
}

TEST(PmapGradient, ThroughAComplexSumThatIsChangedInPlace) {
  const torch::Tensor x = draw({3, 2});
  const auto f = pmap(
      [](torch::Tensor t) {
        torch::Tensor sum = lax::psum(torch::complex(t, 2 * t), "i");
        sum.mul_(3);
        return torch::real(sum) + torch::imag(sum);
      },
      {.axis_name = "i"});
  EXPECT_TRUE(
      torch::allclose(grad([&](const torch::Tensor& v) { return total(f(v)); })(x), torch::full_like(x, 3 * 3 * 3.0)));
}

TEST(PmapGradient, OfAGradientWithRespectToAWholeArgumentThatNeedsNone) {
  const torch::Tensor w = draw({2});
  const auto f = pmap(
      [](torch::Tensor t, torch::Tensor k) {
        return grad([](const torch::Tensor& v, const torch::Tensor& u) { return (v.square() * u.pow(3)).sum(); })(k, t);
      },
      {.in_axes = {0, none}});
  check_derivatives([&](const torch::Tensor& v) { return total(f(v, w)); }, draw({3, 2}));
}

TEST(PmapGradient, OfABodyThatReturnsItsArgumentOrMovesIt) {
  const torch::Tensor x = draw({3, 2});
  check_derivatives([&](const torch::Tensor& v) { return total(pmap([](torch::Tensor t) { return t; })(v)); }, x);
  check_derivatives([&](const torch::Tensor& v) { return total(pmap([](torch::Tensor t) { return t + 1; })(v)); }, x);
}

TEST(PmapGradient, LeavesTheCallersTensorsAsTheyAreWhenABodyDifferentiatesByHand) {
  const Sharded<torch::Tensor> p = replicate(draw({2}));
  const auto f = pmap([](torch::Tensor w, torch::Tensor x) {
    w.requires_grad_();
    const torch::Tensor loss = (w * x).square().sum();
    const auto g = torch::autograd::grad({loss}, {w})[0];
    return std::pair(g, loss.detach());
  });
  const torch::Tensor x = draw({9, 2});
  EXPECT_TRUE(torch::allclose(f(p, x)[1].first, 2 * p[1] * x[1].square()));
  EXPECT_FALSE(p[0].requires_grad());
}

TEST(PmapGradient, FreesTheInputsOfACallAfterBackward) {
  const auto f = pmap([](torch::Tensor t) { return t * 1.0; });
  const torch::Tensor x = draw({2, 1}).requires_grad_();
  torch::Tensor between = f(x).stack();
  const c10::weak_intrusive_ptr<c10::TensorImpl> watched(between.getIntrusivePtr());
  const torch::Tensor y = f(between).stack();
  between = torch::Tensor();
  EXPECT_FALSE(watched.expired());
  y.sum().backward();
  EXPECT_TRUE(watched.expired());
}

TEST(PmapGradient, OfALongChainOfCallsNeedsNoDeepStack) {
  const auto f = pmap([](torch::Tensor t) { return t * 1.0; });
  const torch::Tensor x = draw({2, 1}).requires_grad_();
  torch::Tensor y = x;
  for (int i = 0; i < 2000; ++i) y = f(y).stack();
  y.sum().backward();
  EXPECT_TRUE(torch::equal(x.grad(), torch::ones_like(x)));
}

TEST(PmapGradient, ResultsWithoutGradientsHaveNoGraph) {
  const auto f = pmap([](torch::Tensor t) { return t.square(); });
  EXPECT_FALSE(f(draw({2}))[0].requires_grad());
  const at::NoGradGuard off;
  EXPECT_FALSE(f(draw({2}).requires_grad_())[0].requires_grad());
  // Nor does a gradient inside build one.
  const auto inner =
      pmap([](torch::Tensor t) { return grad([](const torch::Tensor& v) { return v.square().sum(); })(t); });
  EXPECT_FALSE(inner(draw({2}).requires_grad_())[0].requires_grad());
}

TEST(PmapGradient, AuxiliaryResultsThatAreShardedKeepNoGraph) {
  const auto f = pmap([](torch::Tensor t) { return t.square(); });
  const auto loss = [&](const torch::Tensor& v) {
    const auto out = f(v);
    return std::pair(out.stack().sum(), std::tuple(out, 2 * v, out));
  };
  const torch::Tensor x = draw({3, 2});
  const auto [value, g] = value_and_grad(loss)(x);
  const auto& [out, twice, again] = value.second;
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(torch::equal(out[i], x[i].square()));
    EXPECT_FALSE(out[i].requires_grad());
    EXPECT_FALSE(again[i].requires_grad());
  }
  EXPECT_FALSE(twice.requires_grad());
  EXPECT_TRUE(torch::allclose(g, 2 * x));
}

TEST(PmapGradient, SecondBackwardThroughAFreedGraphSaysSo) {
  const torch::Tensor x = draw({2}).requires_grad_();
  const torch::Tensor loss = total(pmap([](torch::Tensor t) { return t.square(); })(x));
  loss.backward({}, /*retain_graph=*/true);
  loss.backward();
  EXPECT_TRUE(torch::allclose(x.grad(), 4 * x.detach()));
  EXPECT_THAT([&] { loss.backward(); }, testing::ThrowsMessage<Error>(testing::HasSubstr("a second time")));
}

}  // namespace pmap_gradient_test
}  // namespace brigade
