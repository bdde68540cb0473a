#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "brigade/brigade.h"
#include "support/nine_devices.h"

namespace brigade {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

// One number for each device, summed in the documented order: T(i, j) = T(i, i + p) + T(i + p, j).
template <class T>
T tree_sum(const std::vector<T>& values, std::size_t i, std::size_t j) {
  if (j - i == 1) return values[i];
  std::size_t p = 1;
  while (2 * p < j - i) p *= 2;
  return tree_sum(values, i, i + p) + tree_sum(values, i + p, j);
}

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
      for (std::int64_t i = 0; i < n; ++i) EXPECT_EQ(out[i][k].item<float>(), tree_sum(column, 0, column.size()));
    }
  }
}

TEST(Collectives, OfXMinusTheReducedValue) {
  const torch::Tensor x = torch::arange(20, torch::kFloat).reshape({5, 4});
  EXPECT_TRUE(torch::equal(mapped([](torch::Tensor t) { return t - lax::psum(t, "i"); })(x).stack(), x - x.sum(0)));
  EXPECT_TRUE(torch::equal(mapped([](torch::Tensor t) { return t - lax::pmean(t, "i"); })(x).stack(), x - x.mean(0)));
  EXPECT_TRUE(torch::equal(mapped([](torch::Tensor t) { return t - lax::pmax(t, "i"); })(x).stack(), x - x.amax(0)));
  EXPECT_TRUE(torch::equal(mapped([](torch::Tensor t) { return t - lax::pmin(t, "i"); })(x).stack(), x - x.amin(0)));
}

TEST(Collectives, TakeTreesOfMixedDtypesAndNumbersInOneCall) {
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

TEST(Collectives, HaveTheDtypesThatJaxGives) {
  const torch::Tensor b = torch::tensor({true, false, true, true}).reshape({2, 2});
  const auto sum = mapped([](torch::Tensor t) { return lax::psum(t, "i"); })(b);
  EXPECT_EQ(sum[0].scalar_type(), torch::kInt);
  EXPECT_TRUE(torch::equal(sum[0], torch::tensor({2, 1}, torch::kInt)));
  const auto mean = mapped([](torch::Tensor t) { return lax::pmean(t, "i"); })(b);
  EXPECT_EQ(mean[0].scalar_type(), torch::kFloat);
  EXPECT_TRUE(torch::equal(mean[0], torch::tensor({1.0F, 0.5F})));
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

TEST(Collectives, SmallIntegersWrapAndHalvesAreRoundedOnce) {
  const torch::Tensor u8 = torch::full({3, 1}, 100, torch::kByte);
  EXPECT_EQ(mapped([](torch::Tensor t) { return lax::psum(t, "i"); })(u8)[0].item<int>(), 300 - 256);
  // 2048 + 1 + 1 in float16 is 2048 when rounded at each step, and 2050 when rounded once.
  const torch::Tensor half = torch::tensor({2048.0F, 1.0F, 1.0F}).reshape({3, 1}).to(torch::kHalf);
  EXPECT_EQ(mapped([](torch::Tensor t) { return lax::psum(t, "i"); })(half)[0].item<float>(), 2050.0F);
}

TEST(Pmean, OfIntegersDoesNotOverflow) {
  const torch::Tensor x = torch::full({3, 1}, 2'000'000'000, torch::kInt);
  EXPECT_EQ(mapped([](torch::Tensor t) { return lax::pmean(t, "i"); })(x)[0].item<float>(), 2e9F);
}

TEST(Pmean, OfDifferentIntegerTypesIsAMismatch) {
  EXPECT_THAT(
      [] {
        mapped([](torch::Tensor t) { return lax::pmean(lax::axis_index("i") == 0 ? t : t.to(torch::kLong), "i"); })(
            torch::ones({2, 1}, torch::kInt));
      },
      ThrowsMessage<CollectiveMismatch>(HasSubstr("from Int")));
}

TEST(Psum, OfAnEmptyTemporaryBoolIsInt32) {
  const auto out =
      mapped([](torch::Tensor) { return lax::psum(torch::zeros({0}, torch::kBool), "i"); })(torch::ones({2}));
  EXPECT_EQ(out[0].scalar_type(), torch::kInt);
}

TEST(Collectives, TakeViewsEmptyTensorsAndScalars) {
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

TEST(AllGather, PutsTheNewDimensionWhereAskedOrConcatenates) {
  const torch::Tensor x = torch::arange(24, torch::kFloat).reshape({4, 3, 2});
  const auto gather = [&](lax::AllGatherOptions options) {
    return mapped([options](torch::Tensor t) { return lax::all_gather(t, "i", options); })(x)[2];
  };
  EXPECT_TRUE(torch::equal(gather({}), x));
  EXPECT_TRUE(torch::equal(gather({.axis = 1}), x.movedim(0, 1)));
  EXPECT_TRUE(torch::equal(gather({.axis = -1}), x.movedim(0, -1)));
  EXPECT_TRUE(torch::equal(gather({.tiled = true}), x.reshape({12, 2})));
  EXPECT_TRUE(torch::equal(gather({.axis = -1, .tiled = true}), torch::cat({x[0], x[1], x[2], x[3]}, -1)));
  const auto kept = mapped([](torch::Tensor t) { return lax::all_gather(t, "i"); })(torch::tensor({true, false}));
  EXPECT_TRUE(torch::equal(kept[1], torch::tensor({true, false})));
}

TEST(AllGather, RefusesAnAxisThatIsNotThere) {
  EXPECT_THAT(
      [] {
        mapped([](torch::Tensor t) { return lax::all_gather(t, "i", {.axis = 3}); })(torch::ones({2, 2}));
      },
      ThrowsMessage<ShapeError>(AllOf(HasSubstr("along dimension 3"), HasSubstr("from -2 to 1"))));
  EXPECT_THROW(
      mapped([](torch::Tensor t) { return lax::all_gather(t, "i", {.axis = 0, .tiled = true}); })(torch::ones({2})),
      ShapeError);
}

TEST(AxisIndex, CountsFromZeroAlsoInALoop) {
  const auto out = mapped([](torch::Tensor) {
    std::int64_t sum = 0;
    for (int i = 0; i < 10; ++i) sum += 1 + lax::axis_index("i");
    return std::pair(sum, lax::axis_size("i"));
  })(torch::ones({4}));
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(out[i].first, 10 * (1 + i));
    EXPECT_EQ(out[i].second, 4);
  }
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

TEST(Collectives, ReuseTheMemoryOfATemporaryThatNobodyElseHolds) {
  EXPECT_TRUE(reduces_in_place([] { return torch::arange(5000, torch::kFloat); }));
  EXPECT_TRUE(reduces_in_place([] { return torch::arange(3, torch::kInt); }));
  // Others hold these: as a view, as a second handle, as foreign memory, or with other strides.
  static const torch::Tensor kept = torch::arange(6, torch::kFloat).reshape({2, 3});
  EXPECT_FALSE(reduces_in_place([] { return kept[1]; }));
  EXPECT_FALSE(reduces_in_place([] { return kept; }));
  static std::array<float, 4> foreign = {1, 2, 3, 4};
  EXPECT_FALSE(reduces_in_place([] { return torch::from_blob(foreign.data(), {4}); }));
  EXPECT_FALSE(reduces_in_place([] { return torch::ones({2, 3}).t(); }));
  EXPECT_FALSE(reduces_in_place([] { return torch::ones({4}, torch::kHalf); }));
}

TEST(Collectives, RefuseWhatCannotTravel) {
  EXPECT_THAT(
      [] { mapped([](torch::Tensor) { return lax::psum(std::vector<torch::Tensor>(1), "i"); })(torch::ones({2})); },
      ThrowsMessage<TreeError>(AllOf(HasSubstr("undefined"), HasSubstr("[0]"))));
  EXPECT_THAT(
      [] {
        mapped([](torch::Tensor t) { return lax::psum(t.to_sparse(), "i"); })(torch::ones({2, 2}));
      },
      ThrowsMessage<InvalidArgument>(AllOf(HasSubstr("dense"), HasSubstr("axis \"i\""))));
  EXPECT_THAT(
      [] {
        mapped([](torch::Tensor t) { return lax::pmax(t.to(torch::kComplexFloat), "i"); })(torch::ones({2, 2}));
      },
      ThrowsMessage<InvalidArgument>(HasSubstr("no order")));
}

TEST(Collectives, GiveTheSameBitsWhateverTheTiming) {
  const torch::Tensor x = torch::randn({7, 10007});
  const auto f = mapped([](torch::Tensor t) { return lax::pmean(lax::psum(t, "i") * t, "i"); });
  const torch::Tensor first = f(x)[0];
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(torch::equal(f(x)[i % 7], first));
}

}  // namespace
}  // namespace brigade
