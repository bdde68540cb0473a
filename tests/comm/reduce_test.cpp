#include "brigade/comm/reduce.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "comm/reduce_support.h"

namespace brigade::comm {
namespace reduce_test {

using testing::bits_of;
using testing::Bool;
using testing::Memory;
using testing::Oracle;
using testing::reduce_memory;
using testing::reduce_vectors;
using testing::reduced;

class ReduceOf : public ::testing::TestWithParam<Oracle> {};

TEST_P(ReduceOf, AnyLengthIsTheTreeBitForBit) {
  constexpr std::size_t kLongest = 300;
  for (int participants = 1; participants <= 9; ++participants) {
    const std::vector<Memory> all = GetParam().inputs(participants, kLongest);
    for (const Reduction reduction : GetParam().reductions) {
      const Memory expected = GetParam().reduced(reduction, all);
      for (std::size_t length = 0; length <= kLongest; ++length) {
        const std::size_t bytes = length * size_of(GetParam().dtype);
        std::vector<Memory> cut = all;
        for (Memory& input : cut) input.resize(bytes);
        const Memory want(expected.begin(), expected.begin() + static_cast<std::ptrdiff_t>(bytes));
        ASSERT_EQ(reduce_memory(reduction, GetParam().dtype, cut, length % 17), want)
            << testing::text_of(reduction) << " of " << participants << " inputs of length " << length;
      }
    }
  }
}

// Longer than one block of partial sums, and enough inputs for several levels of them.
TEST_P(ReduceOf, ManyInputsAndBlocksAreTheTreeBitForBit) {
  for (const int participants : {2, 5, 12, 31, 64, 100}) {
    const std::vector<Memory> all = GetParam().inputs(participants, 3003);
    for (const Reduction reduction : GetParam().reductions) {
      ASSERT_EQ(reduce_memory(reduction, GetParam().dtype, all, 3), GetParam().reduced(reduction, all))
          << testing::text_of(reduction) << " of " << participants;
    }
  }
}

TEST_P(ReduceOf, ResultMayReplaceAnyInput) {
  for (const int participants : {1, 2, 3, 4, 7, 17}) {
    const std::vector<Memory> all = GetParam().inputs(participants, 1501);
    for (const Reduction reduction : GetParam().reductions) {
      const Memory expected = GetParam().reduced(reduction, all);
      for (std::size_t target = 0; target < all.size(); ++target) {
        std::vector<Memory> memory = all;
        const std::vector<std::span<const std::byte>> spans(memory.begin(), memory.end());
        comm::reduce(reduction, GetParam().dtype, spans, memory[target]);
        ASSERT_EQ(memory[target], expected)
            << testing::text_of(reduction) << " into input " << target << " of " << participants;
      }
    }
  }
}

TEST_P(ReduceOf, BitsAreThoseOfThePlainLoopOnEveryInstructionSet) {
  for (int participants = 1; participants <= 9; ++participants) {
    for (const std::size_t length : {1, 2, 7, 8, 15, 31, 33, 63, 64, 65, 127, 129, 257, 1003}) {
      const std::vector<Memory> all = GetParam().special_inputs(participants, length);
      for (const Reduction reduction : GetParam().reductions) {
        const Memory expected = GetParam().reduced(reduction, all);
        testing::on_every_target([&](const char* target) {
          ASSERT_EQ(reduce_memory(reduction, GetParam().dtype, all, 5), expected)
              << testing::text_of(reduction) << " of " << participants << " inputs of length " << length << " on "
              << target;
        });
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Dtypes, ReduceOf, ::testing::ValuesIn(testing::oracles()), testing::dtype_in_name);

RC_GTEST_PROP(Reduce, IsTheTreeForAnyFloats, ()) {
  const auto inputs = *rc::gen::inRange<std::size_t>(1, 20);
  const auto length = *rc::gen::inRange<std::size_t>(0, 70);
  std::vector<std::vector<float>> all;
  for (std::size_t i = 0; i < inputs; ++i) {
    // Any bits: NaNs with any payload, infinities and subnormal numbers among them.
    const auto bits = *rc::gen::container<std::vector<std::uint32_t>>(length, rc::gen::arbitrary<std::uint32_t>());
    std::vector<float> values;
    for (const std::uint32_t word : bits) values.push_back(std::bit_cast<float>(word));
    all.push_back(values);
  }
  RC_ASSERT(bits_of(reduce_vectors({}, all)) == bits_of(reduced({}, all)));
}

TEST(Reduce, OrderShowsInTheBits) {
  const std::vector<std::vector<float>> all = {{1e8F}, {1.0F}, {-1e8F}, {1.0F}};
  EXPECT_EQ(reduce_vectors({}, all), std::vector<float>{0.0F});  // from left to right it would be 1
}

TEST(Reduce, NanWinsMinAndMaxInEveryPosition) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const ReduceOp op : {ReduceOp::kMin, ReduceOp::kMax}) {
    for (std::size_t inputs = 2; inputs <= 9; ++inputs) {
      for (std::size_t at = 0; at < inputs; ++at) {
        std::vector<std::vector<float>> all(inputs, {1.0F});
        all[at][0] = nan;
        EXPECT_TRUE(std::isnan(reduce_vectors({.op = op}, all)[0])) << name_of(op) << " at " << at << " of " << inputs;
      }
    }
  }
}

TEST(Reduce, InfinitiesAddAsIeeeSays) {
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(reduce_vectors<float>({}, {{infinity}, {1.0F}})[0], infinity);
  EXPECT_TRUE(std::isnan(reduce_vectors<float>({}, {{infinity}, {-infinity}})[0]));
  EXPECT_EQ(reduce_vectors<float>({.op = ReduceOp::kMin}, {{infinity}, {-infinity}})[0], -infinity);
}

TEST(Reduce, IntegerSumsWrap) {
  const auto max32 = std::numeric_limits<std::int32_t>::max();
  const auto max64 = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(reduce_vectors<std::int32_t>({}, {{max32}, {1}})[0], std::numeric_limits<std::int32_t>::min());
  EXPECT_EQ(reduce_vectors<std::int64_t>({}, {{max64}, {1}})[0], std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(reduce_vectors<std::int64_t>({.op = ReduceOp::kMax}, {{max64}, {-max64}})[0], max64);
  EXPECT_EQ(reduce_vectors<std::int8_t>({}, {{127}, {2}})[0], -127);
  EXPECT_EQ(reduce_vectors<std::int16_t>({}, {{-32768}, {-1}})[0], 32767);
  EXPECT_EQ(reduce_vectors<std::uint8_t>({}, {{200}, {100}})[0], 44);
  EXPECT_EQ(reduce_vectors<std::uint8_t>({.op = ReduceOp::kMax}, {{200}, {100}})[0], 200);
}

TEST(Reduce, MinOfBoolsIsAllAndMaxIsAny) {
  for (int word = 0; word < 8; ++word) {
    std::vector<std::vector<Bool>> all;
    for (int i = 0; i < 3; ++i) all.push_back({{static_cast<std::uint8_t>(word >> i & 1)}});
    EXPECT_EQ(reduce_vectors({.op = ReduceOp::kMin}, all)[0].bits, word == 7 ? 1 : 0);
    EXPECT_EQ(reduce_vectors({.op = ReduceOp::kMax}, all)[0].bits, word == 0 ? 0 : 1);
  }
}

TEST(Reduce, ComplexNumbersAreAddedAndDividedByParts) {
  using Z = std::complex<float>;
  EXPECT_EQ(reduce_vectors<Z>({}, {{{1, 2}}, {{3, -5}}})[0], Z(4, -3));
  EXPECT_EQ(reduce_vectors<Z>({.divisor = 2}, {{{1, 2}}, {{3, -5}}})[0], Z(2, -1.5));
}

TEST(Reduce, DividesAMinAndAMaxToo) {
  EXPECT_EQ(reduce_vectors<float>({.op = ReduceOp::kMin, .divisor = -2}, {{6}, {-4}})[0], 2);
  EXPECT_EQ(reduce_vectors<double>({.op = ReduceOp::kMax, .divisor = -2}, {{6}, {-4}})[0], -3);
}

TEST(Reduce, DividesOnceAndCorrectlyRounded) {
  // 41 * (1 / 41) is not 1 in float.
  EXPECT_EQ(bits_of(reduce_vectors<float>({.divisor = 41}, {{40.0F}, {1.0F}})[0]), bits_of(1.0F));
  EXPECT_NE(bits_of(41.0F * (1.0F / 41.0F)), bits_of(1.0F));
}

// x / y was rounded here by hand: the exact quotient, compared with the midpoint of two floats in long double.
RC_GTEST_PROP(Reduce, DividesFloatsByAnyDoubleCorrectlyRounded, (std::uint32_t x_bits, std::uint64_t y_bits)) {
  // 24 and 53 significant bits, of moderate size.
  const float x = std::bit_cast<float>((x_bits & 0x007FFFFFU) | 0x3F800000U);
  const double y = std::bit_cast<double>((y_bits & 0x000FFFFFFFFFFFFFU) | 0x3FF0000000000000U);
  const float got = reduce_vectors<float>({.divisor = y}, {{x}})[0];
  // The exact error of a candidate is |x - candidate * y|, of 77 bits: integers hold it.
  const auto error = [&](float candidate) {
    const auto scaled_x = static_cast<__int128>(std::ldexp(static_cast<double>(x), 23)) << 54;
    const auto scaled = static_cast<__int128>(std::ldexp(static_cast<double>(candidate), 25)) *
                        static_cast<__int128>(std::ldexp(y, 52));
    const __int128 difference = scaled_x - scaled;
    return difference < 0 ? -difference : difference;
  };
  RC_ASSERT(error(got) <= error(std::nextafter(got, 0.0F)));
  RC_ASSERT(error(got) <= error(std::nextafter(got, 4.0F)));
}

// Quotients so near to the middle of two floats that in double they are the middle: rounding that to float again would
// break the tie to even, wherever the exact quotient lies.
TEST(Reduce, DoesNotRoundAQuotientTwice) {
  int decided = 0;
  for (int k = 1; k < 4096; ++k) {
    const float x = 1.0F + static_cast<float>(k) * 0x1p-23F;
    const double middle = 1.0 + (2.0 * k + 1.0) * 0x1p-24;  // between two floats
    const double y = static_cast<double>(x) / middle;
    const double quotient = static_cast<double>(x) / y;
    const long double missing = std::fma(-middle, y, static_cast<double>(x));  // exact
    if (quotient != middle || missing == 0.0L) continue;
    ++decided;
    const float below = static_cast<float>(middle - 0x1p-25);
    const float above = static_cast<float>(middle + 0x1p-25);
    ASSERT_EQ(reduce_vectors<float>({.divisor = y}, {{x}})[0], missing > 0 ? above : below) << k;
  }
  EXPECT_GT(decided, 1000);
}

TEST(Reduce, RefusesSpansThatDoNotFit) {
  const std::vector<std::byte> in(8);
  std::vector<std::byte> out(8);
  const std::vector<std::span<const std::byte>> one = {in};
  EXPECT_THROW(comm::reduce({}, DType::kInt32, {}, out), InvalidArgument);
  EXPECT_THROW(comm::reduce({}, DType::kInt32, one, std::span(out).first(4)), InvalidArgument);
  const std::vector<std::span<const std::byte>> six = {std::span(in).first(6)};
  EXPECT_THROW(comm::reduce({}, DType::kInt32, six, std::span(out).first(6)), InvalidArgument);
}

}  // namespace reduce_test
}  // namespace brigade::comm
