// psum, pmax, pmin, pargmax and pargmin.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>

#include "brigade/brigade.h"
#include "support/nine_devices.h"
#include "support/tree_sum.h"

namespace brigade {
namespace reduce_test {

using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

template <class F>
auto mapped(F f) {
  return pmap(f, {.axis_name = "i"});
}

TEST(Psum, TakesTheDocumentedTreeForEveryNumberOfDevices) {
  for (std::int64_t n = 1; n <= 9; ++n) {
    const torch::Tensor x = torch::randn({n, 5});
    const auto out = mapped([](torch::Tensor t) { return lax::psum(t, "i"); })(x);
    for (int k = 0; k < 5; ++k) {
      std::vector<float> column;
      for (std::int64_t i = 0; i < n; ++i) column.push_back(x[i][k].item<float>());
      for (std::int64_t i = 0; i < n; ++i) EXPECT_EQ(out[i][k].item<float>(), tree_sum(column));
    }
  }
}

TEST(Reductions, OfXMinusTheReducedValue) {
  const torch::Tensor x = torch::arange(20, torch::kFloat).reshape({5, 4});
  EXPECT_TRUE(torch::equal(mapped([](torch::Tensor t) { return t - lax::psum(t, "i"); })(x).stack(), x - x.sum(0)));
  EXPECT_TRUE(torch::equal(mapped([](torch::Tensor t) { return t - lax::pmean(t, "i"); })(x).stack(), x - x.mean(0)));
  EXPECT_TRUE(torch::equal(mapped([](torch::Tensor t) { return t - lax::pmax(t, "i"); })(x).stack(), x - x.amax(0)));
  EXPECT_TRUE(torch::equal(mapped([](torch::Tensor t) { return t - lax::pmin(t, "i"); })(x).stack(), x - x.amin(0)));
}

TEST(Psum, HasTheDtypesThatJaxGives) {
  const torch::Tensor b = torch::tensor({true, false, true, true}).reshape({2, 2});
  const auto sum = mapped([](torch::Tensor t) { return lax::psum(t, "i"); })(b);
  EXPECT_EQ(sum[0].scalar_type(), torch::kInt);
  EXPECT_TRUE(torch::equal(sum[0], torch::tensor({2, 1}, torch::kInt)));
  EXPECT_EQ(mapped([](torch::Tensor t) { return lax::pmax(t, "i"); })(b)[0].scalar_type(), torch::kBool);
  for (const auto type :
       {torch::kByte, torch::kChar, torch::kShort, torch::kInt, torch::kLong, torch::kHalf, torch::kBFloat16,
        torch::kFloat, torch::kDouble, torch::kComplexFloat, torch::kComplexDouble}) {
    const torch::Tensor x = torch::arange(6).reshape({3, 2}).to(type);
    const auto out = mapped([](torch::Tensor t) { return lax::psum(t, "i"); })(x);
    EXPECT_EQ(out[0].scalar_type(), type);
    EXPECT_TRUE(torch::equal(out[0].to(torch::kComplexDouble), torch::tensor({6, 9}).to(torch::kComplexDouble)))
        << type;
  }
}

TEST(Psum, WrapsSmallIntegersAndRoundsHalvesOnce) {
  const torch::Tensor u8 = torch::full({3, 1}, 100, torch::kByte);
  EXPECT_EQ(mapped([](torch::Tensor t) { return lax::psum(t, "i"); })(u8)[0].item<int>(), 300 - 256);
  // 2048 + 1 + 1 in float16 is 2048 when rounded at each step, and 2050 when rounded once.
  const torch::Tensor half = torch::tensor({2048.0F, 1.0F, 1.0F}).reshape({3, 1}).to(torch::kHalf);
  EXPECT_EQ(mapped([](torch::Tensor t) { return lax::psum(t, "i"); })(half)[0].item<float>(), 2050.0F);
}

TEST(Psum, OfAConstantNumberIsTheNumberTimesTheDevices) {
  const auto out =
      mapped([](torch::Tensor) { return std::pair(lax::psum(3, "i"), lax::psum(0.5, "i")); })(torch::ones(6));
  EXPECT_EQ(out[5].first, 18);
  EXPECT_EQ(out[5].second, 3.0);
}

TEST(Psum, OfAnEmptyTemporaryBoolIsInt32) {
  const auto out =
      mapped([](torch::Tensor) { return lax::psum(torch::zeros({0}, torch::kBool), "i"); })(torch::ones({2}));
  EXPECT_EQ(out[0].scalar_type(), torch::kInt);
}

TEST(Reductions, TakeViewsEmptyTensorsAndScalars) {
  const torch::Tensor x = torch::arange(24, torch::kFloat).reshape({2, 3, 4}).transpose(1, 2);
  EXPECT_TRUE(torch::equal(mapped([](torch::Tensor t) { return lax::psum(t, "i"); })(x)[1], x.sum(0)));
  EXPECT_EQ(mapped([](torch::Tensor t) { return lax::psum(t, "i"); })(torch::ones({2, 0, 3}))[0].sizes(),
            torch::IntArrayRef({0, 3}));
  EXPECT_EQ(mapped([](torch::Tensor t) { return lax::pmean(t, "i"); })(torch::tensor({1.0, 4.0}))[0].item<double>(),
            2.5);
  const auto conj = mapped([](torch::Tensor t) { return lax::psum(t.conj(), "i"); })(
      torch::complex(torch::ones({2, 1}), torch::ones({2, 1})));
  EXPECT_EQ(torch::imag(conj[0]).item<float>(), -2.0F);
}

TEST(Reductions, ResolveLazyConjugationAndNegation) {
  const torch::Tensor z = torch::view_as_complex(torch::randint(-9, 9, {3, 4, 2}).to(torch::kFloat));
  const auto out = mapped([](torch::Tensor t) {
    const std::vector<torch::Tensor> lazy = {t.conj(), torch::imag(t.conj()), torch::_neg_view(t),
                                             torch::_neg_view(t).conj()};
    return std::tuple(lax::psum(lazy, "i"), lax::pmean(lazy, "i", {.weight = 1}), lax::all_gather(lazy, "i"));
  })(z);
  const auto [sums, means, rows] = out[1];
  const std::vector<torch::Tensor> resolved = {z.conj().resolve_conj(), -torch::imag(z), -z, -z.conj().resolve_conj()};
  for (std::size_t k = 0; k < resolved.size(); ++k) {
    EXPECT_TRUE(torch::equal(sums[k], resolved[k].sum(0))) << k;
    EXPECT_TRUE(torch::allclose(means[k], resolved[k].sum(0) / 3)) << k;
    EXPECT_TRUE(torch::equal(rows[k], resolved[k])) << k;
  }
}

TEST(Reductions, TakeTreesOfMixedDtypesAndNumbersInOneCall) {
  struct Mixed {
    std::map<std::string, torch::Tensor> tensors;
    double number;
    std::int64_t index;
  };
  const auto out = mapped([](torch::Tensor x) {
    return lax::psum(Mixed{{{"f", x.to(torch::kFloat)}, {"d", x.to(torch::kDouble)}, {"l", x.to(torch::kLong)}},
                           1.5,
                           lax::axis_index("i")},
                     "i");
  })(torch::arange(12).reshape({4, 3}));
  const torch::Tensor sum = torch::arange(12).reshape({4, 3}).sum(0);
  EXPECT_TRUE(torch::equal(out[3].tensors.at("f"), sum.to(torch::kFloat)));
  EXPECT_TRUE(torch::equal(out[3].tensors.at("l"), sum));
  EXPECT_EQ(out[0].tensors.at("d").scalar_type(), torch::kDouble);
  EXPECT_EQ(out[0].number, 6.0);
  EXPECT_EQ(out[0].index, 0 + 1 + 2 + 3);
}

TEST(Reductions, OfFiveHundredLeavesTravelTogether) {
  const auto f = mapped([](torch::Tensor t) {
    std::vector<torch::Tensor> leaves;
    for (int k = 0; k < 500; ++k) leaves.push_back(k % 3 == 0 ? (t * k).to(torch::kInt) : t * k);
    const comm::Group& group = find_axis("i", std::source_location::current()).group();
    const std::int64_t before = group.statistics().calls;
    leaves = lax::pmean(std::move(leaves), "i");
    EXPECT_EQ(group.statistics().calls, before + 1);
    return leaves;
  });
  const auto out = f(torch::arange(6, torch::kFloat).reshape({3, 2}));
  for (int k = 0; k < 500; ++k) {
    EXPECT_TRUE(torch::equal(out[2][static_cast<std::size_t>(k)], torch::tensor({2.0F * k, 3.0F * k}))) << k;
  }
}

TEST(Reductions, OrderUnsignedNumbersUpToTheLargest) {
  constexpr std::uint64_t kTop = std::uint64_t{1} << 63;
  const auto out = mapped([](torch::Tensor) {
    const std::uint64_t large = lax::axis_index("i") == 1 ? kTop + 5 : 1;
    const auto mixed = std::tuple(large, -lax::axis_index("i"), static_cast<std::uint32_t>(large - 2));
    return std::tuple(lax::pmax(mixed, "i"), lax::pmin(mixed, "i"), lax::pargmax(mixed, "i"), lax::pargmin(mixed, "i"),
                      lax::psum(large, "i"));
  })(torch::ones({3}));
  const auto [max, min, argmax, argmin, sum] = out[2];
  constexpr std::uint32_t kLast = ~std::uint32_t{0};
  EXPECT_EQ(max, std::tuple(kTop + 5, 0, kLast));
  EXPECT_EQ(min, std::tuple(1, -2, 3));
  EXPECT_EQ(argmax, std::tuple(1, 0, 0));
  EXPECT_EQ(argmin, std::tuple(0, 2, 1));
  EXPECT_EQ(sum, kTop + 7);
}

TEST(Pargmax, AndPargminOverDevicesAreThoseOfTheWhole) {
  for (const std::int64_t n : {1, 2, 5, 9}) {
    const torch::Tensor x = torch::randint(-3, 3, {n, 50});  // with ties
    const auto f = pmap([](torch::Tensor t) { return std::pair(lax::pargmax(t, "i"), lax::pargmin(t, "i")); },
                        {.axis_name = "i", .out_axes = none});
    const auto [max, min] = f(x).stack();
    EXPECT_TRUE(torch::equal(max, x.argmax(0).to(torch::kInt)));
    EXPECT_TRUE(torch::equal(min, x.argmin(0).to(torch::kInt)));
  }
}

TEST(Pargmax, AndPargminGiveTheLowestDeviceThatHoldsTheExtreme) {
  const torch::Tensor x = torch::tensor({3.0F, 1.0F, 5.0F, 7.0F, 1.0F, 5.0F, 7.0F, 0.0F, 5.0F}).reshape({3, 3});
  const auto max = mapped([](torch::Tensor t) { return lax::pargmax(t, "i"); })(x);
  const auto min = mapped([](torch::Tensor t) { return lax::pargmin(t, "i"); })(x);
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(torch::equal(max[i], torch::tensor({1, 0, 0}, torch::kInt)));
    EXPECT_TRUE(torch::equal(min[i], torch::tensor({0, 2, 0}, torch::kInt)));
  }
}

TEST(Pargmax, OfNanIsWhoHoldsIt) {
  const float nan = std::nanf("");
  const torch::Tensor x = torch::tensor({1.0F, 5.0F, nan, 5.0F, nan, 7.0F}).reshape({3, 2});
  const auto max = mapped([](torch::Tensor t) { return lax::pargmax(t, "i"); })(x);
  EXPECT_TRUE(torch::equal(max[0], torch::tensor({1, 2}, torch::kInt)));
  const auto min = mapped([](torch::Tensor t) { return lax::pargmin(t, "i"); })(x);
  EXPECT_TRUE(torch::equal(min[2], torch::tensor({1, 0}, torch::kInt)));
  const auto values = mapped([](torch::Tensor t) { return lax::pmax(t, "i"); })(x);
  EXPECT_TRUE(std::isnan(values[0][0].item<float>()));
}

TEST(Pargmax, LeavesItsArgumentAsItWasAndTakesNumbersAndBools) {
  const auto out = mapped([](torch::Tensor t) {
    torch::Tensor x = t * 2;
    const torch::Tensor index = lax::pargmax(x, "i");
    EXPECT_TRUE(torch::equal(x, t * 2));
    return std::tuple(index, lax::pargmax(lax::axis_index("i") * 2.0, "i"), lax::pargmin(t > 0, "i"));
  })(torch::arange(4));
  EXPECT_EQ(std::get<0>(out[1]).item<int>(), 3);
  EXPECT_EQ(std::get<1>(out[1]), 3.0);
  EXPECT_EQ(std::get<2>(out[1]).item<int>(), 0);
}

// Whether a reduction of what `make` gives, passed as an rvalue, has its memory.
template <class Make>
bool reduces_in_place(Make make) {
  std::atomic<int> same{0};
  mapped([&](torch::Tensor) {
    torch::Tensor x = make();
    const void* memory = x.data_ptr();
    const torch::Tensor sum = lax::psum(std::move(x), "i");
    same += sum.data_ptr() == memory;
    const torch::Tensor again = make();
    EXPECT_TRUE(torch::equal(sum, lax::psum(again, "i")));
    EXPECT_TRUE(torch::equal(again, make()));
  })(torch::ones({3}));
  EXPECT_TRUE(same == 0 || same == 3);
  return same == 3;
}

TEST(Reductions, ReuseTheMemoryOfATemporaryThatNobodyElseHolds) {
  EXPECT_TRUE(reduces_in_place([] { return torch::arange(5000, torch::kFloat); }));
  EXPECT_TRUE(reduces_in_place([] { return torch::arange(3, torch::kInt); }));
  EXPECT_TRUE(reduces_in_place([] { return torch::ones(3, torch::kHalf); }));
  EXPECT_TRUE(reduces_in_place([] { return torch::ones(3, torch::kComplexFloat); }));
  // Others hold these: as a view, as a second handle, as foreign memory, or with other strides. The last is converted.
  static const torch::Tensor kept = torch::arange(6, torch::kFloat).reshape({2, 3});
  EXPECT_FALSE(reduces_in_place([] { return kept[1]; }));
  EXPECT_FALSE(reduces_in_place([] { return kept; }));
  static std::array<float, 4> foreign = {1, 2, 3, 4};
  EXPECT_FALSE(reduces_in_place([] { return torch::from_blob(foreign.data(), {4}); }));
  EXPECT_FALSE(reduces_in_place([] { return torch::ones({2, 3}).t(); }));
  EXPECT_FALSE(reduces_in_place([] { return torch::ones({4}, torch::kBool); }));
}

TEST(Reductions, GiveTheSameBitsWhateverTheTiming) {
  const torch::Tensor x = torch::randn({7, 10007});
  const auto f = mapped([](torch::Tensor t) { return lax::pmean(lax::psum(t, "i") * t, "i"); });
  const torch::Tensor first = f(x)[0];
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(torch::equal(f(x)[i % 7], first));
}

TEST(Pmax, OfComplexNumbersNamesTheLeaf) {
  const auto f = [](auto op) {
    return [op] {
      mapped([op](torch::Tensor t) {
        return op(std::map<std::string, torch::Tensor>{{"a", t}, {"b", t.to(torch::kComplexFloat)}});
      })(torch::ones({2, 2}));
    };
  };
  const auto message = [](const char* name) {
    return ThrowsMessage<InvalidArgument>(AllOf(HasSubstr(name), HasSubstr("no order: reduce .abs()"),
                                                HasSubstr("(argument b,"), HasSubstr("axis \"i\""),
                                                HasSubstr("reduce_test.cpp:")));
  };
  EXPECT_THAT(f([](const auto& tree) { return lax::pmax(tree, "i"); }), message("pmax of complex"));
  EXPECT_THAT(f([](const auto& tree) { return lax::pargmin(tree, "i"); }), message("pargmin of complex"));
}

TEST(Reductions, RefuseWhatCannotTravel) {
  EXPECT_THAT(
      [] { mapped([](torch::Tensor) { return lax::psum(std::vector<torch::Tensor>(1), "i"); })(torch::ones({2})); },
      ThrowsMessage<TreeError>(AllOf(HasSubstr("psum of an undefined tensor"), HasSubstr("argument [0]"))));
  EXPECT_THAT(
      [] {
        mapped([](torch::Tensor t) { return lax::psum(std::pair(1, t.to_sparse()), "i"); })(torch::ones({2, 2}));
      },
      ThrowsMessage<InvalidArgument>(AllOf(HasSubstr("psum takes dense tensors, and this one is Sparse"),
                                           HasSubstr("argument [1]"), HasSubstr("axis \"i\""))));
  EXPECT_THAT(
      [] {
        mapped([](torch::Tensor t) { return lax::pmax(std::pair(t, torch::empty({2}, torch::kMeta)), "i"); })(
            torch::ones({2, 2}));
      },
      ThrowsMessage<InvalidArgument>(HasSubstr("pmax takes CPU tensors")));
}

TEST(Reductions, RefuseDtypesThatCannotTravelAndNameTheLeaf) {
  const auto refused = [](const char* text) {
    return ThrowsMessage<InvalidArgument>(AllOf(HasSubstr(text), HasSubstr("(argument b,"), HasSubstr("device "),
                                                HasSubstr("axis \"i\""), HasSubstr("reduce_test.cpp:")));
  };
  const auto with = [](auto collective, auto make) {
    return [collective, make] {
      mapped([&](torch::Tensor t) {
        return collective(std::map<std::string, torch::Tensor>{{"a", t}, {"b", make(t)}});
      })(torch::ones({2, 2}));
    };
  };
  const auto psum = [](const auto& tree) { return lax::psum(tree, "i"); };
  EXPECT_THAT(with(psum, [](torch::Tensor) { return torch::empty({2}, torch::kComplexHalf); }),
              refused("psum does not take tensors of dtype ComplexHalf: convert them with .to(torch::kComplexFloat)"));
  EXPECT_THAT(with(psum, [](torch::Tensor t) { return torch::quantize_per_tensor(t, 1.0, 0, torch::kQUInt8); }),
              refused("psum does not take tensors of dtype QUInt8: convert them with .dequantize()"));
  EXPECT_THAT(with([](const auto& tree) { return lax::all_gather(tree, "i"); },
                   [](torch::Tensor) { return torch::empty({2}, torch::kComplexHalf); }),
              refused("all_gather does not take tensors of dtype ComplexHalf"));
}

// Gradients do not pass through a tree, so there is no leaf to name.
TEST(Reductions, OfGradientsRefuseDtypesThatCannotTravel) {
  const auto step =
      value_and_grad([](const std::vector<torch::Tensor>& p) { return p[0].sum(); }, lax::reduce_mean("i"));
  EXPECT_THAT(
      [&] {
        mapped([&](torch::Tensor t) {
          return step(std::vector{t, torch::empty({2}, torch::kComplexHalf)}).first;
        })(torch::ones({2, 2}));
      },
      ThrowsMessage<InvalidArgument>(AllOf(HasSubstr("reduce_mean does not take tensors of dtype ComplexHalf"),
                                           HasSubstr("axis \"i\""), HasSubstr("device "),
                                           HasSubstr("reduce_test.cpp:"))));
}

}  // namespace reduce_test
}  // namespace brigade
