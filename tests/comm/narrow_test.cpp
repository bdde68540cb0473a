// Numbers of 16 bits: every one of them is read right, and results are rounded once.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cfenv>
#if defined(__SSE2__)
#include <immintrin.h>
#endif

#include "comm/reduce_support.h"

namespace brigade::comm {
namespace narrow_test {

using testing::bits_of;
using testing::Float16;
using testing::quotient_of;
using testing::reduce_vectors;
using testing::reduced;
using testing::value_of;

template <class T>
using Inputs = std::vector<std::vector<T>>;

template <class T>
class Narrow : public ::testing::Test {
 protected:
  // All of them, in an order that `stride`, an odd number, says.
  static std::vector<T> every_number(std::uint32_t stride = 1) {
    std::vector<T> numbers;
    for (std::uint32_t i = 0; i < 0x10000; ++i) numbers.push_back({static_cast<std::uint16_t>(i * stride)});
    return numbers;
  }

  // Three numbers whose sum in float32 is x.
  static Inputs<T> parts_of(float x) {
    Inputs<T> parts;
    for (int i = 0; i < 3; ++i) {
      parts.push_back({quotient_of<T>(x)});
      x -= value_of(parts.back()[0]);
    }
    EXPECT_EQ(x, 0.0F);
    return parts;
  }

  static void expect_reduced(Reduction reduction, const Inputs<T>& inputs) {
    const auto expected = bits_of(reduced(reduction, inputs));
    testing::on_every_target([&](const char* target) {
      EXPECT_EQ(bits_of(reduce_vectors(reduction, inputs)), expected)
          << testing::text_of(reduction) << " of " << inputs.size() << " inputs on " << target;
    });
  }
};
using NarrowTypes = ::testing::Types<Float16, testing::BFloat16>;
TYPED_TEST_SUITE(Narrow, NarrowTypes);

TYPED_TEST(Narrow, EveryNumberIsReadAndWrittenAsItIs) {
  const auto numbers = this->every_number();
  auto expected = numbers;
  for (auto& x : expected) x.bits = is_nan(x) ? TypeParam::kNan : x.bits;
  const std::vector<TypeParam> negative_zeros(numbers.size(), {0x8000});
  testing::on_every_target([&](const char* target) {
    EXPECT_EQ(bits_of(reduce_vectors<TypeParam>({}, {numbers, negative_zeros})), bits_of(expected)) << target;
    EXPECT_EQ(bits_of(reduce_vectors<TypeParam>({.op = ReduceOp::kMin}, {numbers, numbers})), bits_of(expected))
        << target;
  });
}

TYPED_TEST(Narrow, EveryNumberAddedToOthersIsRoundedOnce) {
  for (const std::uint32_t stride : {1, 3, 17, 0x2B1, 0x7FFF, 0x9E37}) {
    this->expect_reduced({}, {this->every_number(), this->every_number(stride)});
  }
}

// By counts of participants and others; powers of two lead ties into the subnormal numbers.
TYPED_TEST(Narrow, EveryNumberDividedIsRoundedOnce) {
  for (const double divisor : {2.0, 3.0, 5.0, -7.0, 8.0, 12.0, 1000.0, 4096.0, 4097.0, 32768.0, 40001.0, 0.1, 0.25,
                               1e-3, 0x1p20, 0x1p-20, 3e12, 0.0, std::numeric_limits<double>::infinity()}) {
    this->expect_reduced({.divisor = divisor}, {this->every_number()});
  }
}

// Exactly between two numbers, and a unit of float32 to either side of that; from 1 on, where three numbers give any float32.
TYPED_TEST(Narrow, TiesGoToTheEvenNumberAndNothingElseIsATie) {
  Inputs<TypeParam> inputs(3);
  for (int bits = TypeParam::kBias << TypeParam::kFractionBits; bits < TypeParam::kInfinity - 1; ++bits) {
    const auto middle = static_cast<float>((TypeParam::magnitude(bits) + TypeParam::magnitude(bits + 1)) / 2);
    for (const float x : {std::nextafter(middle, 0.0F), middle, std::nextafter(middle, 2 * middle), -middle}) {
      const auto parts = this->parts_of(x);
      for (std::size_t i = 0; i < 3; ++i) inputs[i].push_back(parts[i][0]);
    }
  }
  this->expect_reduced({}, inputs);
  for (const double divisor : {0x1p8, 0x1p18, 0x1p30}) this->expect_reduced({.divisor = divisor}, inputs);
}

// Divisors of many bits, so that the quotient in float32, or in double, lies in the middle of two numbers, and the exact one
// beside it: rounding that again would break the tie to even, wherever the exact one lies.
TYPED_TEST(Narrow, DoesNotRoundAQuotientTwice) {
  constexpr int kFirst = TypeParam::kBias << TypeParam::kFractionBits;  // of 1
  int decided = 0;
  for (int k = 0; k < 1 << TypeParam::kFractionBits; ++k) {
    const double middle = (TypeParam::magnitude(kFirst + k) + TypeParam::magnitude(kFirst + k + 1)) / 2;
    for (const float x :
         {40000.0F + static_cast<float>(k), 32768.0F + 0x1p-8F * static_cast<float>(7919 * k % 0x7FFFFF)}) {
      const double in_double = std::bit_cast<double>(std::bit_cast<std::uint64_t>(x / middle) & ~std::uint64_t{1});
      for (const double divisor : {in_double, static_cast<double>(static_cast<float>(in_double))}) {
        const auto inputs = this->parts_of(x);
        const auto expected = bits_of(reduced({.divisor = divisor}, inputs));
        ASSERT_EQ(bits_of(reduce_vectors({.divisor = divisor}, inputs)), expected) << x << " / " << divisor;
        decided += bits_of(quotient_of<TypeParam>(static_cast<float>(x / divisor))) != expected[0] ? 1 : 0;
      }
    }
  }
  EXPECT_GT(decided, 50);
}

TYPED_TEST(Narrow, PartialSumsAreFloat32) {
  const float large = std::ldexp(2.0F, TypeParam::kFractionBits);  // large + 1 is a tie
  const auto x = [](float value) { return std::vector<TypeParam>{quotient_of<TypeParam>(value)}; };
  EXPECT_EQ(value_of(reduce_vectors<TypeParam>({}, {x(large), x(1), x(1), x(0)})[0]), large + 2);
  // From left to right, in double, it would be 1 / 1024.
  EXPECT_EQ(value_of(reduce_vectors<TypeParam>({}, {x(32768), x(0x1p-10F), x(-32768), x(0x1p-10F)})[0]), 0.0F);
}

TYPED_TEST(Narrow, OverflowIsInfiniteAndAMeanDoesNotOverflow) {
  const TypeParam largest = {TypeParam::kInfinity - 1};
  const double next = TypeParam::magnitude(TypeParam::kInfinity);
  const auto half_unit = quotient_of<TypeParam>(static_cast<float>((next - value_of(largest)) / 2));
  EXPECT_EQ(reduce_vectors<TypeParam>({}, {{largest}, {half_unit}})[0].bits, TypeParam::kInfinity);
  const auto less = static_cast<std::uint16_t>(half_unit.bits - 1);
  EXPECT_EQ(reduce_vectors<TypeParam>({}, {{largest}, {{less}}})[0].bits, largest.bits);
  if (std::is_same_v<TypeParam, Float16>) {
    EXPECT_EQ(reduce_vectors<TypeParam>({.divisor = 2}, {{largest}, {largest}})[0].bits, largest.bits);
  }
}

// Sums that float32 holds exactly, so that only our own rounding is left.
TEST(NarrowRounding, DoesNotDependOnTheProcessorsModes) {
  const Inputs<Float16> sums = {{{0x6800}, {0x6801}, {0xE800}, {0x0001}, {0x7BFF}},
                                {{0x3C00}, {0x3C00}, {0xBC00}, {0x0001}, {0x4C00}}};
  const std::vector<std::uint16_t> expected = {0x6800, 0x6802, 0xE800, 0x0002, 0x7C00};
  // 2048 + 1, 2050 + 1, -2048 - 1, twice the smallest, 65504 + 16
  const Inputs<Float16> numbers = {{{0x0001}, {0x0003}, {0x8003}, {0x0403}}};
  const std::vector<std::uint16_t> halves = {0x0000, 0x0002, 0x8002, 0x0202};
  const auto check = [&](const char* mode) {
    testing::on_every_target([&](const char* target) {
      EXPECT_EQ(bits_of(reduce_vectors({}, sums)), expected) << mode << " on " << target;
      EXPECT_EQ(bits_of(reduce_vectors({.divisor = 2}, numbers)), halves) << mode << " on " << target;
    });
  };
  for (const int mode : {FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO}) {
    ASSERT_EQ(std::fesetround(mode), 0);
    check("rounding mode");
    std::fesetround(FE_TONEAREST);
  }
#if defined(__SSE2__)
  const unsigned int before = _mm_getcsr();
  _mm_setcsr(before | 0x8040);  // subnormal numbers are taken for zero, and results flushed to it
  check("subnormal numbers off");
  _mm_setcsr(before);
#endif
}

}  // namespace narrow_test
}  // namespace brigade::comm
