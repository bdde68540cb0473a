#include "brigade/comm/reduce.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "comm/reduce_support.h"

namespace brigade::comm {
namespace {

using testing::bits_of;
using testing::Bool;
using testing::reduce_vectors;
using testing::reduced;
using testing::values_of_all;

template <class T>
class ReduceOf : public ::testing::Test {};
TYPED_TEST_SUITE(ReduceOf, testing::AllTypes);

TYPED_TEST(ReduceOf, AnyLengthIsTheTreeBitForBit) {
  using T = TypeParam;
  for (int inputs = 1; inputs <= 9; ++inputs) {
    const auto all = values_of_all<T>(inputs, 300);
    for (const Reduction reduction : testing::reductions_of<T>()) {
      const std::vector<T> expected = reduced(reduction, all);
      for (std::size_t length = 0; length <= 300; ++length) {
        auto cut = all;
        for (auto& input : cut) input.resize(length);
        const std::vector<T> want(expected.begin(), expected.begin() + static_cast<std::ptrdiff_t>(length));
        ASSERT_EQ(bits_of(reduce_vectors(reduction, cut, length % 17)), bits_of(want))
            << testing::text_of(reduction) << " of " << inputs << " inputs of length " << length;
      }
    }
  }
}

// Longer than one block of partial sums, and enough inputs for several levels of them.
TYPED_TEST(ReduceOf, ManyInputsAndBlocksAreTheTreeBitForBit) {
  using T = TypeParam;
  for (const int inputs : {2, 5, 12, 31, 64, 100}) {
    const auto all = values_of_all<T>(inputs, 5003);
    for (const Reduction reduction : testing::reductions_of<T>()) {
      ASSERT_EQ(bits_of(reduce_vectors(reduction, all, 3)), bits_of(reduced(reduction, all)))
          << testing::text_of(reduction) << " of " << inputs;
    }
  }
}

TYPED_TEST(ReduceOf, ResultMayReplaceAnyInput) {
  using T = TypeParam;
  for (const Reduction reduction : testing::reductions_of<T>()) {
    for (const int inputs : {1, 2, 3, 7, 17}) {
      const auto all = values_of_all<T>(inputs, 1501);
      const auto expected = bits_of(reduced(reduction, all));
      for (std::size_t target = 0; target < all.size(); ++target) {
        auto memory = all;
        std::vector<std::span<const std::byte>> spans;
        for (const auto& input : memory) spans.push_back(std::as_bytes(std::span(input)));
        comm::reduce(reduction, testing::dtype_of<T>(), spans, std::as_writable_bytes(std::span(memory[target])));
        ASSERT_EQ(bits_of(memory[target]), expected)
            << testing::text_of(reduction) << " into input " << target << " of " << inputs;
      }
    }
  }
}

// Every instruction set against the plain loop, with what processors treat differently among the values: NaNs of either sign
// and with payloads, infinities that cancel, zeros of either sign, subnormal numbers.
TYPED_TEST(ReduceOf, BitsAreThoseOfThePlainLoopOnEveryInstructionSet) {
  using T = TypeParam;
  std::vector<std::pair<Reduction, std::vector<std::vector<T>>>> cases;
  for (int inputs = 1; inputs <= 9; ++inputs) {
    for (const std::size_t length : {1, 2, 7, 8, 15, 31, 33, 63, 64, 65, 127, 129, 257, 1003}) {
      auto all = values_of_all<T>(inputs, length, static_cast<std::uint32_t>(length));
      testing::plant_specials(all);
      for (const Reduction reduction : testing::reductions_of<T>()) cases.emplace_back(reduction, all);
    }
  }
  for (const auto& [reduction, all] : cases) {
    const auto expected = bits_of(reduced(reduction, all));
    testing::on_every_target([&, &reduction_ = reduction, &all_ = all](const char* target) {
      ASSERT_EQ(bits_of(reduce_vectors(reduction_, all_, 5)), expected)
          << testing::text_of(reduction_) << " of " << all_.size() << " inputs of length " << all_[0].size() << " on "
          << target;
    });
  }
}

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

}  // namespace
}  // namespace brigade::comm
