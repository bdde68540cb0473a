// Messages from somebody who means harm, or from a wire that does.
#include "comm/compress/support.h"
#include "data/replay.h"

extern "C" int fuzz_codec(const std::uint8_t* data, std::size_t size);

namespace brigade::comm {
namespace damage_test {

using namespace testing;

class Damage : public ::testing::TestWithParam<NamedCodec> {};
INSTANTIATE_TEST_SUITE_P(Codecs, Damage, ::testing::ValuesIn(all_codecs()),
                         [](const auto& test) { return test.param.name; });

TEST_P(Damage, OfTheLengthIsAnError) {
  const Codec& codec = GetParam().codec;
  for (const Matrix shape : {Matrix(1), Matrix(300), Matrix(33, 65)}) {
    Message message = encoded(codec, numbers(shape.size()), shape);
    Numbers out(shape.size());
    for (std::size_t size = 0; size < message.size(); size += 1 + message.size() / 50) {
      // A copy of exactly this size, so that AddressSanitizer sees a read behind its end.
      const Message cut(message.begin(), message.begin() + static_cast<std::ptrdiff_t>(size));
      EXPECT_ERROR(codec.decode(cut, shape, out), DataError, "message is damaged: it has");
    }
    message.push_back(std::byte{0});
    EXPECT_ERROR(codec.decode(message, shape, out), DataError, "message is damaged: it has");
  }
}

// What the fuzzer checks, of messages with one byte changed.
TEST_P(Damage, OfAByteIsAnErrorOrGivesNumbers) {
  const auto codecs = all_codecs();
  const Matrix shape = {9, 15};
  const Message message = encoded(GetParam().codec, numbers(shape.size()), shape);
  std::vector<std::uint8_t> input = {0, 9, 15, 0};
  for (const std::byte byte : message) input.push_back(static_cast<std::uint8_t>(byte));
  for (std::uint8_t codec = 0; codec < 16; ++codec) {
    input[0] = codec;
    for (std::size_t i = 4; i < input.size(); ++i) {
      for (const std::uint8_t change : {0x01, 0x80, 0xFF}) {
        input[i] = static_cast<std::uint8_t>(input[i] ^ change);
        fuzz_codec(input.data(), input.size());
        input[i] = static_cast<std::uint8_t>(input[i] ^ change);
      }
    }
  }
}

// The fuzzer's corpus, on every truncation and every change of one byte as well.
TEST(DamageOfTheCorpus, IsAnErrorOrGivesNumbers) { data::replay_corpus(fuzz_codec, BRIGADE_FUZZ_CORPUS "/codec"); }

void expect_damaged(const Codec& codec, const Message& message, std::size_t count, const std::string& text) {
  Numbers out(count);
  EXPECT_ERROR(codec.decode(message, out), DataError,
               "the " + std::string(codec.name()) + " message is damaged: " + text);
}

TEST(DamagedInt8, ScalesAndLevelsThatCannotBeAreRefused) {
  const Codec codec = compress::int8();
  const Message good = encoded(codec, numbers(600), 600);
  for (const float scale : {-1.0F, -0.0F, kInfinity, -kInfinity}) {
    Message message = good;
    put(message, 0, 1, scale);
    expect_damaged(codec, message, 600, "block 1 has the scale");
  }
  for (const std::size_t place : {std::size_t{0}, std::size_t{255}, std::size_t{599}}) {
    Message message = good;
    put(message, 3 * sizeof(float), place, std::int8_t{-128});
    expect_damaged(codec, message, 600, "block " + std::to_string(place / 256) + " has the level -128");
  }
}

TEST(DamagedOneBit, MeansAndSignsThatCannotBeAreRefused) {
  const Codec codec = compress::onebit();
  const Message good = encoded(codec, numbers(600), 600);
  for (const auto& [others, below] : {std::pair{-1.0F, -1.0F}, {1.0F, 1.0F}, {kNan, -1.0F}, {kInfinity, -1.0F}}) {
    Message message = good;
    put(message, 0, 2, others);
    put(message, 0, 3, below);
    expect_damaged(codec, message, 600, "block 1 has the means");
  }
  Message message = good;
  message.back() |= std::byte{0x80};  // 600 is no multiple of 64
  expect_damaged(codec, message, 600, "there are signs behind the last number");
}

TEST(DamagedTopK, IndicesThatCannotBeAreRefused) {
  const Codec codec = compress::topk();
  const Message good = encoded(codec, numbers(600), 600);
  const auto with_second = [&](std::uint32_t index) {
    Message message = good;
    put(message, 0, 1, index);
    return message;
  };
  expect_damaged(codec, with_second(600), 600, "index 600 is number 1, where");
  expect_damaged(codec, with_second(0xFFFFFFFF), 600, "index 4294967295 is number 1, where");
  const auto first = get<std::uint32_t>(good, 0, 0);
  expect_damaged(codec, with_second(first), 600, "index " + std::to_string(first) + " is number 1, where");
  if (first > 0) expect_damaged(codec, with_second(0), 600, "index 0 is number 1, where");
}

}  // namespace damage_test
}  // namespace brigade::comm
