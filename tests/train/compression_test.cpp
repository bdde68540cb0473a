// Gradients that pass through a codec: the same bits on any number of devices, against a plain loop, and with residuals that only
// steps that count leave behind.
#include <gmock/gmock.h>

#include "brigade/base/error.h"
#include "brigade/optim/adam.h"
#include "brigade/train/leaf.h"
#include "support/errors.h"
#include "train/support.h"

namespace brigade::training {
namespace compression_test {

using namespace testing;

constexpr std::int64_t kRows = 12;
constexpr std::int64_t kLeaves = 4;

DataParallelOptions options_with(Compression compression, int devices = 2) {
  return {.optimizer = optim::sgd({.momentum = 0.9}),
          .learning_rate = schedule::constant(0.05),
          .global_batch = kRows,
          .logical_shards = kLeaves,
          .devices = first_devices(devices),
          .compress = std::move(compression)};
}

struct Outcome {
  std::vector<at::Tensor> parameters;
  std::vector<double> numbers;
};

Outcome run(const DataParallelOptions& options) {
  DataParallel trainer(make_mlp(), options);
  Outcome result;
  for (int step = 0; step < 6; ++step) {
    // Every third step is a short one, in which the last leaf has no rows.
    const StepReport report = trainer.step(make_rows(step % 3 == 2 ? 8 : kRows, step), mean_loss);
    result.numbers.insert(result.numbers.end(), {report.loss, report.gradient_norm});
    if (!report.compression) continue;
    result.numbers.insert(result.numbers.end(), {static_cast<double>(report.compression->wire_bytes),
                                                 static_cast<double>(report.compression->uncompressed_bytes),
                                                 report.compression->relative_error});
  }
  result.parameters = values_of(trainer.model());
  return result;
}

void expect_same(const Outcome& one, const Outcome& other, const std::string& what) {
  EXPECT_EQ(one.numbers, other.numbers) << what;
  for (std::size_t i = 0; i < one.parameters.size(); ++i)
    EXPECT_TRUE(same_bits(one.parameters[i], other.parameters[i])) << what << ", parameter " << i;
}

bool are_same(const Outcome& one, const Outcome& other) {
  for (std::size_t i = 0; i < one.parameters.size(); ++i) {
    if (!same_bits(one.parameters[i], other.parameters[i])) return false;
  }
  return true;
}

struct Named {
  std::string name;
  comm::Codec codec;
};

class CompressedTraining : public ::testing::TestWithParam<Named> {};
INSTANTIATE_TEST_SUITE_P(Codecs, CompressedTraining,
                         ::testing::Values(Named{"fp16", compress::fp16()}, Named{"int8", compress::int8()},
                                           Named{"onebit", compress::onebit()},
                                           Named{"topk", compress::topk({.ratio = 0.1})},
                                           Named{"powersgd", compress::powersgd({.rank = 2})}),
                         [](const auto& test) { return test.param.name; });

TEST_P(CompressedTraining, HasTheSameBitsOnOneToFourDevices) {
  const Compression compression = {.codec = GetParam().codec};
  const Outcome one = run(options_with(compression, 1));
  for (const int count : {2, 3, 4}) {
    expect_same(run(options_with(compression, count)), one, std::to_string(count) + " devices");
  }
  DataParallelOptions others = options_with(compression, 3);
  others.first_bucket_bytes = others.bucket_bytes = 1 << 10;
  others.share_parameters = false;
  expect_same(run(others), one, "other buckets, own copies");
  others.overlap = Overlap::kOff;
  expect_same(run(others), one, "no overlap");
  EXPECT_FALSE(are_same(run(options_with({})), one)) << "without compression";
}

TEST(CompressionByNone, GivesTheBitsOfNoCompression) {
  const Outcome plain = run(options_with({}));
  Outcome none = run(options_with({.codec = compress::none()}));
  EXPECT_TRUE(are_same(none, plain));
  for (const auto feedback : {ErrorFeedback::kOn, ErrorFeedback::kOff}) {
    EXPECT_TRUE(are_same(run(options_with({.codec = compress::none(), .error_feedback = feedback})), plain));
  }
}

TEST(CompressionFrom, StartStepLeavesTheStepsBeforeItAlone) {
  for (const int start : {0, 2, 4}) {
    DataParallel plain(make_mlp(), options_with({}));
    DataParallel compressed(make_mlp(), options_with({.codec = compress::topk(), .start_step = start}));
    for (int step = 0; step < 5; ++step) {
      plain.step(make_rows(kRows, step), mean_loss);
      const StepReport report = compressed.step(make_rows(kRows, step), mean_loss);
      EXPECT_EQ(report.compression.has_value(), step >= start) << step;
      const auto one = values_of(plain.model()), other = values_of(compressed.model());
      EXPECT_EQ(same_bits(one[0], other[0]), step < start) << step;
    }
  }
}

// The gradients of the sums over each leaf's rows, by autograd alone.
std::vector<std::vector<at::Tensor>> leaf_gradients(const Mlp& model, const Rows& rows) {
  std::vector<std::vector<at::Tensor>> leaves;
  for (std::int64_t begin = 0; begin < rows.x.size(0); begin += kRows / kLeaves) {
    const std::int64_t count = std::min(kRows / kLeaves, rows.x.size(0) - begin);
    leaves.push_back(plain_sums(model, {rows.x.narrow(0, begin, count), rows.y.narrow(0, begin, count)}, count));
  }
  return leaves;
}

// Top-k needs no key, so everything can be written down here: residuals by leaf, in the unit of the step.
TEST(CompressionByTopK, SumsWhatArrivesOfGradientAndResidual) {
  const comm::Codec codec = compress::topk({.ratio = 0.1});
  DataParallel trainer(make_mlp(), options_with({.codec = codec}));
  std::vector<std::vector<at::Tensor>> residuals(kLeaves, std::vector<at::Tensor>(4));
  std::vector<double> units(kLeaves, 1);
  for (int step = 0; step < 6; ++step) {
    const std::int64_t rows = step % 3 == 2 ? 8 : kRows;
    Mlp before = trainer.model();
    tree::for_each([](const tree::Path&, at::Tensor& t) { t = t.detach().clone(); }, before);
    const StepReport report = trainer.step(make_rows(rows, step), mean_loss);
    const auto gradients = leaf_gradients(before, make_rows(rows, step));

    std::vector<std::vector<at::Tensor>> arrived(4);
    double norm = 0, error = 0, messages = 0, numbers = 0;
    for (std::size_t leaf = 0; leaf < gradients.size(); ++leaf) {
      for (std::size_t i = 0; i < 4; ++i) {
        at::Tensor whole = gradients[leaf][i];
        at::Tensor& residual = residuals[leaf][i];
        if (residual.defined()) whole = whole + residual * (static_cast<double>(rows) / units[leaf]);
        const auto count = static_cast<std::size_t>(whole.numel());
        std::vector<std::byte> message(codec.encoded_bytes(count));
        at::Tensor out = at::empty_like(whole);
        codec.encode({whole.data_ptr<float>(), count}, {}, message);
        codec.decode(message, {out.data_ptr<float>(), count});
        residual = whole - out;
        norm += whole.to(at::kDouble).square().sum().item<double>();
        error += residual.to(at::kDouble).square().sum().item<double>();
        messages += static_cast<double>(message.size());
        numbers += static_cast<double>(count);
        arrived[i].push_back(out);
      }
      units[leaf] = static_cast<double>(rows);
    }
    const auto reported = trainer.gradients();
    for (std::size_t i = 0; i < 4; ++i) {
      EXPECT_TRUE(same_bits(reported[i].tensor, tree_sum(arrived[i]) / static_cast<double>(rows))) << step << ", " << i;
    }
    ASSERT_TRUE(report.compression);
    EXPECT_NEAR(report.compression->relative_error, std::sqrt(error / norm), 1e-6);
    EXPECT_EQ(report.compression->wire_bytes, messages);
    EXPECT_EQ(report.compression->uncompressed_bytes, 4 * numbers);
  }
}

TEST(CompressionResiduals, AreUntouchedByAStepThatThrows) {
  for (const comm::Codec& codec : {compress::topk({.ratio = 0.1}), compress::int8(), compress::powersgd({.rank = 2})}) {
    DataParallel straight(make_mlp(), options_with({.codec = codec}, 3)),
        stumbling(make_mlp(), options_with({.codec = codec}, 3));
    for (int step = 0; step < 4; ++step) {
      straight.step(make_rows(kRows, step), mean_loss);
      const auto fails_late = [](const Mlp& model, const Rows& rows) {
        if (leaf_index() == kLeaves - 1) throw std::runtime_error("of the user");
        return mean_loss(model, rows);
      };
      EXPECT_ERROR(stumbling.step(make_rows(kRows, 100 + step), fails_late), std::runtime_error, "of the user");
      const auto infinite = [](const Mlp& model, const Rows& rows) {
        return mean_loss(model, rows) * (leaf_index() == 0 ? INFINITY : 1.0);
      };
      EXPECT_ERROR(stumbling.step(make_rows(kRows, 200 + step), infinite), NonFiniteError, "leaf 0");
      stumbling.step(make_rows(kRows, step), mean_loss);
      expect_same_bits(values_of(straight.model()), values_of(stumbling.model()),
                       std::string(codec.name()) + ", step " + std::to_string(step));
    }
  }
}

// An infinity in the gradient of one element of w2, while the loss is finite.
at::Tensor poisoned(const Mlp& model, const Rows& rows) {
  return mean_loss(model, rows) + (model.w2.flatten()[17] - model.w2.detach().flatten()[17]).sqrt();
}

TEST(CompressionResiduals, AreUntouchedByAStepThatIsSkipped) {
  DataParallelOptions options = options_with({.codec = compress::topk({.ratio = 0.1})}, 3);
  options.non_finite = NonFinite::kSkip;
  DataParallel straight(make_mlp(), options), stumbling(make_mlp(), options);
  for (int step = 0; step < 4; ++step) {
    straight.step(make_rows(kRows, step), mean_loss);
    EXPECT_TRUE(stumbling.step(make_rows(kRows, 100 + step), poisoned).skipped);
    stumbling.step(make_rows(kRows, step), mean_loss);
    expect_same_bits(values_of(straight.model()), values_of(stumbling.model()), "step " + std::to_string(step));
  }
}

// Whatever the codec would have made of it.
TEST(CompressionOf, AGradientThatIsNotFiniteKeepsItsPlace) {
  for (const comm::Codec& codec : {compress::onebit(), compress::int8(), compress::powersgd({.rank = 2})}) {
    DataParallel trainer(make_mlp(), options_with({.codec = codec}));
    EXPECT_ERROR(trainer.step(make_rows(kRows), poisoned), NonFiniteError, "gradient of w2 is inf at element 17");
  }
}

// Powers of two, so that the unit of residuals is all there is to see.
TEST(CompressionResiduals, FollowTheLossScale) {
  DataParallelOptions options = options_with({.codec = compress::topk({.ratio = 0.1})});
  const Outcome plain = run(options);
  options.loss_scale = {.initial = 1024, .growth = 2, .interval = 2};
  const Outcome scaled = run(options);
  EXPECT_TRUE(are_same(scaled, plain));
}

TEST(CompressionOf, AParameterThatIsUsedNowAndThenWaitsWithItsResidual) {
  const auto without_b1 = [](const Mlp& model, const Rows& rows) {
    return at::cross_entropy_loss(at::addmm(model.b2, at::relu(at::mm(rows.x, model.w1)), model.w2), rows.y);
  };
  DataParallel trainer(make_mlp(), options_with({.codec = compress::topk({.ratio = 0.02})}));
  trainer.step(make_rows(kRows, 0), mean_loss);  // leaves residuals of b1 behind: 63 of its 65 numbers
  const auto before = values_of(trainer.model());
  const StepReport report = trainer.step(make_rows(kRows, 1), without_b1);
  EXPECT_THAT(report.unused_parameters, ::testing::ElementsAre("b1"));
  EXPECT_TRUE(same_bits(values_of(trainer.model())[1], before[1]));
  EXPECT_FALSE(same_bits(values_of(trainer.model())[0], before[0]));
}

// In the paper's words: with error feedback compressed descent comes as close as plain descent, here to a least squares solution.
TEST(CompressedDescent, ComesToTheSolutionWithErrorFeedback) {
  struct Point {
    at::Tensor w;
  };
  const at::Tensor x = random::normal(random::key(1), {64, 20}), solution = random::normal(random::key(2), {20});
  const at::Tensor y = at::mv(x, solution);
  for (const comm::Codec& codec :
       {compress::int8({.block = 64}), compress::onebit({.block = 64}), compress::topk({.ratio = 0.05})}) {
    DataParallel trainer(Point{at::zeros({20})}, {.learning_rate = schedule::constant(0.05),
                                                  .global_batch = 64,
                                                  .logical_shards = 4,
                                                  .devices = first_devices(2),
                                                  .compress = {.codec = codec}});
    for (int step = 0; step < 3000; ++step) {
      trainer.step(Rows{x, y},
                   [](const Point& p, const Rows& rows) { return (at::mv(rows.x, p.w) - rows.y).square().mean(); });
    }
    EXPECT_LT((trainer.model().w.detach() - solution).norm().item<double>(), 1e-3) << codec.name();
  }
}

TEST(CompressionOptions, ThatCannotBeAreRefused) {
  DataParallelOptions options = options_with({.codec = compress::int8(), .start_step = -1});
  EXPECT_ERROR(DataParallel(make_mlp(), options), InvalidArgument, "compress.start_step is -1");
  Mlp model = make_mlp();
  model.b1 = model.b1.to(at::kDouble);
  EXPECT_ERROR(DataParallel(model, options_with({.codec = compress::int8()})), InvalidArgument,
               "compress is for float32, and b1 is float64");
}

TEST(CompressionIs, DescribedWithTheTrainer) {
  DataParallel trainer(make_mlp(), options_with({.codec = compress::topk(), .start_step = 100}));
  EXPECT_THAT(trainer.describe(),
              ::testing::HasSubstr("gradients as topk, ratio 0.01, error feedback from step 100 on"));
}

}  // namespace compression_test
}  // namespace brigade::training
