// Numbers of 16 bits, by definition: tests/comm/formats.h.
#include "comm/compress/support.h"
#include "comm/formats.h"

namespace brigade::comm {
namespace half_test {

using namespace testing;

struct Fp16 {
  using Format = Float16;
  static Codec codec() { return compress::fp16(); }
};
struct Bf16 {
  using Format = BFloat16;
  static Codec codec() { return compress::bf16(); }
};

template <class T>
class HalfCodec : public ::testing::Test {};
using Halves = ::testing::Types<Fp16, Bf16>;
TYPED_TEST_SUITE(HalfCodec, Halves);

std::vector<std::uint16_t> halves_in(const Message& message) {
  std::vector<std::uint16_t> halves(message.size() / 2);
  std::memcpy(halves.data(), message.data(), message.size());
  return halves;
}

TYPED_TEST(HalfCodec, RoundsToTheNearestAndTiesToEven) {
  using Format = typename TypeParam::Format;
  Numbers in;
  // Every middle of two neighbours and the float32 numbers beside it, in both signs.
  for (int bits = 0; bits < Format::kInfinity; ++bits) {
    const auto middle = static_cast<float>((Format::magnitude(bits) + Format::magnitude(bits + 1)) / 2);
    for (const float x : {std::nextafter(middle, 0.0F), middle, std::nextafter(middle, kInfinity)}) {
      in.push_back(x);
      in.push_back(-x);
    }
  }
  for (const float x : {0.0F, -0.0F, kInfinity, -kInfinity, kNan, -kNan, std::numeric_limits<float>::max()})
    in.push_back(x);
  std::mt19937 generator(3);
  for (int i = 0; i < 20'000; ++i) in.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(generator())));

  const auto halves = halves_in(encoded(TypeParam::codec(), in, in.size()));
  for (std::size_t i = 0; i < in.size(); ++i) ASSERT_EQ(halves[i], quotient_of<Format>(in[i]).bits) << in[i];
}

TYPED_TEST(HalfCodec, ReadsEveryNumberAsItIs) {
  using Format = typename TypeParam::Format;
  Message message(2 * 0x10000);
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) put(message, 0, bits, static_cast<std::uint16_t>(bits));
  const Numbers out = decoded(TypeParam::codec(), message, 0x10000);
  const auto again = halves_in(encoded(TypeParam::codec(), out, out.size()));
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const Format half = {static_cast<std::uint16_t>(bits)};
    if (is_nan(half)) {
      ASSERT_TRUE(std::isnan(out[bits]));
      ASSERT_EQ(again[bits], Format::kNan);
    } else {
      ASSERT_EQ(std::bit_cast<std::uint32_t>(out[bits]), std::bit_cast<std::uint32_t>(value_of(half)));
      ASSERT_EQ(again[bits], half.bits);
    }
  }
}

TEST(Fp16Codec, MakesInfinitiesOfWhatIsTooLarge) {
  EXPECT_EQ(passed(compress::fp16(), {65504, 65519, 65520, -1e9F}), (Numbers{65504, 65504, kInfinity, -kInfinity}));
}

}  // namespace half_test
}  // namespace brigade::comm
