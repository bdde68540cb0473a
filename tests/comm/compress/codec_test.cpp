// What holds for every codec.
#include <cstring>

#include "comm/compress/support.h"

namespace brigade::comm {
namespace codec_test {

using namespace testing;

class EveryCodec : public ::testing::TestWithParam<NamedCodec> {
 protected:
  const Codec& codec() const { return GetParam().codec; }
};
INSTANTIATE_TEST_SUITE_P(Codecs, EveryCodec, ::testing::ValuesIn(all_codecs()),
                         [](const auto& test) { return test.param.name; });

// None, one, odd ones, whole groups and blocks and those around them; matrices whose rows are cut at other places than blocks.
const std::vector<Matrix> kShapes = {0,   1,    2,        63,      64,       65,       255,      256,     257,
                                     512, 1001, {3, 100}, {1, 50}, {50, 17}, {64, 64}, {33, 65}, {7, 300}};

TEST_P(EveryCodec, GivesTheSameBitsOnEveryInstructionSet) {
  struct Outcome {
    Message message;
    Numbers next;
    Numbers out = {};
  };
  const auto outcome = [&](Matrix shape) {
    Outcome result = {.message = Message(codec().encoded_bytes(shape)), .next = Numbers(codec().state_size(shape))};
    Numbers state = result.next;
    // The second encode begins from a state that is not zeros.
    for (const unsigned seed : {1U, 2U}) {
      std::swap(state, result.next);
      codec().encode(numbers(shape.size(), seed), shape, {.key = kKey, .state = state, .next_state = result.next},
                     result.message);
    }
    result.out = decoded(codec(), result.message, shape);
    return result;
  };
  std::vector<Outcome> expected;
  for (const Matrix shape : kShapes) expected.push_back(outcome(shape));
  on_every_target([&](const char* target) {
    for (std::size_t i = 0; i < kShapes.size(); ++i) {
      const Outcome own = outcome(kShapes[i]);
      EXPECT_EQ(own.message, expected[i].message) << kShapes[i].rows << " x " << kShapes[i].columns << " on " << target;
      EXPECT_EQ(bits_of(own.next), bits_of(expected[i].next)) << target;
      EXPECT_EQ(bits_of(own.out), bits_of(expected[i].out)) << target;
    }
  });
}

// A second passage loses nothing: what arrives is what the codec can say.
TEST_P(EveryCodec, GivesWhatItGaveOnceMore) {
  // The others have factors, means and scales of their own, which are rounded.
  const bool is_exact = codec().name() == "none" || codec().name() == "topk" || codec().encoded_bytes(2) == 4;
  for (const Matrix shape : kShapes) {
    const Numbers once = passed(codec(), numbers(shape.size()), shape);
    const Numbers twice = passed(codec(), once, shape, {5, 6});
    if (is_exact) {
      EXPECT_EQ(bits_of(twice), bits_of(once)) << shape.rows << " x " << shape.columns;
    } else {
      float largest = 0;
      for (const float x : once) largest = std::max(largest, std::abs(x));
      for (std::size_t i = 0; i < once.size(); ++i) EXPECT_NEAR(twice[i], once[i], 1e-5F * largest) << i;
    }
  }
}

TEST_P(EveryCodec, WritesItsMessageAtAnyAddressAndNowhereElse) {
  const Matrix shape = {33, 65};
  const Numbers in = numbers(shape.size());
  const Message expected = encoded(codec(), in, shape);
  const Numbers state(codec().state_size(shape));
  Numbers next = state;
  for (const std::size_t shift : {std::size_t{1}, std::size_t{2}, std::size_t{3}}) {
    Message memory(expected.size() + 2 * shift, std::byte{0xA5});
    const auto message = std::span(memory).subspan(shift, expected.size());
    codec().encode(in, shape, {.key = kKey, .state = state, .next_state = next}, message);
    EXPECT_EQ(Message(message.begin(), message.end()), expected);
    for (std::size_t i = 0; i < shift; ++i) {
      EXPECT_EQ(memory[i], std::byte{0xA5});
      EXPECT_EQ(memory[memory.size() - 1 - i], std::byte{0xA5});
    }
    Numbers out(shape.size());
    codec().decode(message, shape, out);
    EXPECT_EQ(bits_of(out), bits_of(decoded(codec(), expected, shape)));
  }
}

// Whoever looks at the sum of gradients must see it.
TEST_P(EveryCodec, LeavesNothingFiniteOfWhatIsNot) {
  for (const Matrix shape : {Matrix(1), Matrix(300), Matrix(33, 65)}) {
    for (const float bad : {kNan, -kNan, kInfinity, -kInfinity}) {
      for (const std::size_t place : {std::size_t{0}, shape.size() / 2, shape.size() - 1}) {
        Numbers in = numbers(shape.size());
        in[place] = bad;
        const Numbers out = passed(codec(), in, shape);
        EXPECT_TRUE(std::any_of(out.begin(), out.end(), [](float x) { return !std::isfinite(x); }))
            << bad << " at " << place << " of " << shape.size();
      }
    }
  }
}

TEST_P(EveryCodec, RefusesSpansThatDoNotFit) {
  const Matrix shape = {33, 65};
  const Numbers in = numbers(shape.size());
  const Numbers state(codec().state_size(shape));
  Numbers next = state;
  Message message(codec().encoded_bytes(shape));
  const auto encode = [&](std::span<const float> from, std::size_t states, std::size_t next_states, std::size_t bytes) {
    const Numbers own_state(states);
    Numbers own_next(next_states);
    Message own_message(bytes);
    codec().encode(from, shape, {.key = kKey, .state = own_state, .next_state = own_next}, own_message);
  };
  EXPECT_ERROR(encode(std::span(in).first(10), state.size(), state.size(), message.size()), ShapeError,
               "what is encoded has a size of 10");
  EXPECT_ERROR(encode(in, state.size() + 1, state.size(), message.size()), ShapeError, "the state has a size of");
  EXPECT_ERROR(encode(in, state.size(), state.size() + 1, message.size()), ShapeError, "the next state has a size of");
  EXPECT_ERROR(encode(in, state.size(), state.size(), message.size() - 1), ShapeError, "the message has a size of");
  Numbers out(shape.size() + 1);
  EXPECT_ERROR(codec().decode(message, shape, out), ShapeError, "what is decoded into has a size of 2146");
}

// By the table of codecs.h.
TEST(Codecs, TakeTheBytesThatAreDocumented) {
  EXPECT_EQ(compress::none().encoded_bytes(1001), 4004U);
  EXPECT_EQ(compress::fp16().encoded_bytes(1001), 2002U);
  EXPECT_EQ(compress::bf16().encoded_bytes(1001), 2002U);
  EXPECT_EQ(compress::int8().encoded_bytes(1001), 1001U + 4 * 4);
  EXPECT_EQ(compress::int8({.block = 64}).encoded_bytes(1001), 1001U + 4 * 16);
  EXPECT_EQ(compress::onebit().encoded_bytes(1024), 128U + 8 * 2);
  EXPECT_EQ(compress::onebit().encoded_bytes(1025), 17U * 8 + 8 * 3);
  EXPECT_EQ(compress::topk().encoded_bytes(1001), 8U * 11);
  EXPECT_EQ(compress::topk({.ratio = 1}).encoded_bytes(7), 8U * 7);
  EXPECT_EQ(compress::powersgd().encoded_bytes({100, 50}), 4U * 4 * 150);
  EXPECT_EQ(compress::powersgd().encoded_bytes(5000), 4U * 5000);
  for (const NamedCodec& one : all_codecs()) EXPECT_EQ(one.codec.encoded_bytes(0), 0U) << one.name;
}

TEST(Codecs, SayWhatTheyAre) {
  EXPECT_EQ(compress::none().describe(), "none");
  EXPECT_EQ(compress::fp16().describe(), "fp16");
  EXPECT_EQ(compress::bf16().describe(), "bf16");
  EXPECT_EQ(compress::int8().describe(), "int8");
  EXPECT_EQ(compress::int8({.block = 128}).describe(), "int8, blocks of 128");
  EXPECT_EQ(compress::onebit({.block = 128}).describe(), "onebit, blocks of 128");
  EXPECT_EQ(compress::topk({.ratio = 0.05}).describe(), "topk, ratio 0.05");
  EXPECT_EQ(compress::error_feedback(compress::powersgd()).describe(), "powersgd, rank 4, error feedback");
  EXPECT_EQ(compress::error_feedback(compress::onebit()).name(), "onebit");
}

TEST(Codecs, SayWhichOfThemWantErrorFeedback) {
  for (const Codec& codec : {compress::none(), compress::fp16(), compress::bf16()})
    EXPECT_FALSE(codec.wants_error_feedback()) << codec.name();
  for (const Codec& codec : {compress::int8(), compress::onebit(), compress::topk(), compress::powersgd()}) {
    EXPECT_TRUE(codec.wants_error_feedback()) << codec.name();
    EXPECT_FALSE(compress::error_feedback(codec).wants_error_feedback()) << codec.name();
  }
}

TEST(Codecs, RefuseOptionsThatCannotBe) {
  EXPECT_ERROR(compress::int8({.block = 0}), InvalidArgument, "int8: a block of 0: give a multiple of 64");
  EXPECT_ERROR(compress::onebit({.block = 100}), InvalidArgument, "onebit: a block of 100: give a multiple of 64");
  for (const double ratio : {0.0, -0.1, 1.01, std::nan("")}) {
    EXPECT_ERROR(compress::topk({.ratio = ratio}), InvalidArgument, "give a number above 0, to 1");
  }
  EXPECT_ERROR(compress::powersgd({.rank = 0}), InvalidArgument, "powersgd: rank is 0");
}

TEST(Codecs, ThatAreNoneYetSaySo) {
  const Codec codec;
  EXPECT_FALSE(codec);
  EXPECT_TRUE(compress::none());
  EXPECT_ERROR(codec.encoded_bytes(3), InvalidArgument, "this Codec is none yet");
}

TEST(None, KeepsEveryBit) {
  const Numbers in = {1.5F, -0.0F, kInfinity, std::bit_cast<float>(0xFFC12345), std::bit_cast<float>(1U)};
  EXPECT_EQ(bits_of(passed(compress::none(), in)), bits_of(in));
}

}  // namespace codec_test
}  // namespace brigade::comm
