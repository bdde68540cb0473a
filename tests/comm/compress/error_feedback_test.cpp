#include "comm/compress/support.h"

namespace brigade::comm {
namespace error_feedback_test {

using namespace testing;

// A tensor's way through a codec, step after step.
class Passage {
 public:
  Passage(Codec codec, Matrix shape)
      : codec_(std::move(codec)), shape_(shape), state_(codec_.state_size(shape)), next_(state_.size()) {}

  // What arrives. The step counts when `keeps`.
  Numbers operator()(const Numbers& in, std::uint32_t step, bool keeps = true, float residual_scale = 1) {
    Message message(codec_.encoded_bytes(shape_));
    codec_.encode(in, shape_,
                  {.key = {9, step}, .state = state_, .next_state = next_, .residual_scale = residual_scale}, message);
    if (keeps) std::swap(state_, next_);
    return decoded(codec_, message, shape_);
  }

  std::span<float> residual() { return std::span(state_).first(codec_.residual_size(shape_)); }

 private:
  Codec codec_;
  Matrix shape_;
  Numbers state_, next_;
};

const std::vector<NamedCodec> kLossy = {{"bf16", compress::bf16()},
                                        {"int8", compress::int8()},
                                        {"onebit", compress::onebit()},
                                        {"topk", compress::topk({.ratio = 0.05})},
                                        {"powersgd", compress::powersgd({.rank = 2})}};

class ErrorFeedback : public ::testing::TestWithParam<NamedCodec> {};
INSTANTIATE_TEST_SUITE_P(Codecs, ErrorFeedback, ::testing::ValuesIn(kLossy),
                         [](const auto& test) { return test.param.name; });

// Nothing is lost: what has arrived and what is left are what was sent. Each step rounds twice, at numbers not above the largest
// residual and input.
TEST_P(ErrorFeedback, LosesNothingInTheEnd) {
  const Matrix shape = {23, 41};
  Passage passage(compress::error_feedback(GetParam().codec), shape);
  std::vector<double> sent(shape.size()), arrived(shape.size());
  double largest = 0;
  constexpr int kSteps = 50;
  for (unsigned step = 0; step < kSteps; ++step) {
    const Numbers in = numbers(shape.size(), step);
    const Numbers out = passage(in, step);
    for (std::size_t i = 0; i < in.size(); ++i) {
      sent[i] += static_cast<double>(in[i]);
      arrived[i] += static_cast<double>(out[i]);
      largest = std::max({largest, std::abs(static_cast<double>(in[i])), std::abs(static_cast<double>(out[i])),
                          std::abs(static_cast<double>(passage.residual()[i]))});
    }
  }
  for (std::size_t i = 0; i < sent.size(); ++i) {
    EXPECT_NEAR(arrived[i] + static_cast<double>(passage.residual()[i]), sent[i], kSteps * 2 * 0x1p-24 * 2 * largest);
  }
}

// The decorator by its definition, step by step, around a codec without a state of its own.
TEST_P(ErrorFeedback, IsTheCodecOfInputAndResidual) {
  const Codec codec = GetParam().codec;
  const std::size_t count = 700;
  Passage passage(compress::error_feedback(codec), count);
  Numbers residual(count);
  for (unsigned step = 0; step < 5; ++step) {
    const Numbers in = numbers(count, step);
    Numbers corrected(count);
    for (std::size_t i = 0; i < count; ++i) corrected[i] = in[i] + residual[i];
    const Numbers expected = passed(codec, corrected, ThreefryKey{9, step});
    EXPECT_EQ(bits_of(passage(in, step)), bits_of(expected));
    for (std::size_t i = 0; i < count; ++i) residual[i] = corrected[i] - expected[i];
    EXPECT_EQ(bits_of(passage.residual()), bits_of(residual));
  }
}

// A step that failed is carried out again, and nobody can tell.
TEST_P(ErrorFeedback, ForgetsAStepThatDoesNotCount) {
  const Matrix shape = {23, 41};
  const Codec codec = compress::error_feedback(GetParam().codec);
  Passage straight(codec, shape), stumbling(codec, shape);
  for (unsigned step = 0; step < 6; ++step) {
    const Numbers expected = straight(numbers(shape.size(), step), step);
    stumbling(numbers(shape.size(), 1000 + step), step, /*keeps=*/false);
    EXPECT_EQ(bits_of(stumbling(numbers(shape.size(), step), step)), bits_of(expected)) << step;
  }
  EXPECT_EQ(bits_of(stumbling.residual()), bits_of(straight.residual()));
}

TEST(ErrorFeedbackOfTopK, BringsWhatIsSmallInTheEnd) {
  Numbers in(100, 0.125F);
  in[0] = 8;
  const Codec codec = compress::topk({.ratio = 0.01});
  Passage plain(codec, 100), corrected(compress::error_feedback(codec), 100);
  Numbers without(100), with(100);
  constexpr unsigned kSteps = 1000;
  for (unsigned step = 0; step < kSteps; ++step) {
    const Numbers one = plain(in, step), other = corrected(in, step);
    for (std::size_t i = 0; i < 100; ++i) {
      without[i] += one[i];
      with[i] += other[i];
    }
  }
  for (std::size_t i = 1; i < 100; ++i) {
    EXPECT_EQ(without[i], 0) << i;
    // All numbers together grow by 20.375 a step, and the largest is sent: it is about that, and nothing that waits is larger.
    EXPECT_NEAR(with[i], kSteps * in[i], 2 * 20.375F) << i;
  }
}

// Half precision with a loss scale that has halved since: the residual is in the old unit.
TEST(ErrorFeedbackResidual, IsTakenToTheUnitOfTheNumbers) {
  const Numbers in = {1, -3, 2, 0.5F};
  const Codec codec = compress::error_feedback(compress::topk({.ratio = 0.25}));
  Passage passage(codec, 4);
  passage(in, 0);
  EXPECT_EQ(Numbers(passage.residual().begin(), passage.residual().end()), (Numbers{1, 0, 2, 0.5F}));
  EXPECT_EQ(passage({0, 0, 0, 0}, 1, true, 0.5F), (Numbers{0, 0, 1, 0}));
  EXPECT_EQ(Numbers(passage.residual().begin(), passage.residual().end()), (Numbers{0.5F, 0, 0, 0.25F}));
}

TEST(ErrorFeedbackResidual, ComesFirstInTheState) {
  const Matrix shape = {20, 30};
  const Codec codec = compress::error_feedback(compress::powersgd({.rank = 2}));
  EXPECT_EQ(codec.residual_size(shape), 600U);
  EXPECT_EQ(codec.state_size(shape), 600U + 2 * 30);
  EXPECT_EQ(compress::topk().residual_size(shape), 0U);
}

TEST(ErrorFeedbackAround, ItselfIsRefused) {
  EXPECT_ERROR(compress::error_feedback(compress::error_feedback(compress::int8())), InvalidArgument,
               "error_feedback around int8, error feedback: it has error feedback already");
}

}  // namespace error_feedback_test
}  // namespace brigade::comm
