// What the options of `brigade train` do to a run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "events.h"

namespace brigade {
namespace train_options_test {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

std::vector<std::string> with(std::vector<std::string> arguments, const std::vector<std::string>& more) {
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

TEST(TrainOptions, LogicalShardsGiveTheSameLossesOnAnyNumberOfDevices) {
  const auto run = [](const std::string& devices) {
    return train({"--logical-shards", "4", "--max-steps", "25", "--devices", devices});
  };
  const auto one = run("1");
  ASSERT_EQ(losses_of(one).size(), 25U);
  EXPECT_EQ(one.front()["global_batch"], 256);
  for (const std::string devices : {"2", "4"}) {
    const auto several = run(devices);
    EXPECT_EQ(several.front()["devices"], std::stoi(devices));
    EXPECT_EQ(losses_of(several), losses_of(one));
    EXPECT_EQ(several.back()["test_loss"], one.back()["test_loss"]);
    EXPECT_EQ(of_kind(several, "step").back()["digest"], of_kind(one, "step").back()["digest"]);  // of all parameters
  }
}

TEST(TrainOptions, AccumulationIsTheStepOfAsManyShards) {
  const auto shards = train({"--global-batch", "128", "--logical-shards", "4", "--max-steps", "12", "--devices", "4"});
  const auto accumulated =
      train({"--per-device-batch", "32", "--accumulate", "2", "--max-steps", "12", "--devices", "2"});
  EXPECT_EQ(accumulated.front()["global_batch"], 128);
  const auto expected = losses_of(shards);
  const auto losses = losses_of(accumulated);
  ASSERT_EQ(losses.size(), expected.size());
  // Not bit by bit on machines where an operator of two devices has several threads.
  for (std::size_t i = 0; i < losses.size(); ++i) EXPECT_NEAR(losses[i], expected[i], 1e-5);
}

TEST(TrainOptions, SharingAndBucketsDoNotShowInTheBits) {
  const std::vector<std::string> run = {"--max-steps", "12", "--devices", "2"};
  const auto losses = losses_of(train(run));
  EXPECT_EQ(losses_of(train(with(run, {"--no-share-parameters"}))), losses);
  EXPECT_EQ(losses_of(train(with(run, {"--bucket-mb", "0.01"}))), losses);
}

TEST(TrainOptions, EveryOptimizerTrainsAtItsUsualRate) {
  for (const std::string name : {"sgd", "adam", "adamw", "adagrad", "rmsprop", "lars", "lamb"}) {
    SCOPED_TRACE(name);
    const auto events = train({"--optimizer", name, "--max-steps", "60", "--devices", "2"});
    EXPECT_THAT(events.front()["optimizer"].get<std::string>(), HasSubstr(name));
    EXPECT_LT(losses_of(events).back(), 1.0);  // 2.3 and more at the start
  }
}

TEST(TrainOptions, TheRateFollowsFromTheRowsByTheRuleThatIsAskedFor) {
  const auto rate = [](const std::vector<std::string>& options) {
    const auto events = train(with({"--devices", "2", "--schedule", "constant", "--warmup", "0", "--lr", "0.01",
                                    "--max-steps", "1", "--per-device-batch", "128"},
                                   options));
    return events[1]["learning_rate"].get<double>();
  };
  EXPECT_NEAR(rate({"--scale-lr", "linear"}), 0.04, 1e-12);
  EXPECT_NEAR(rate({"--scale-lr", "sqrt"}), 0.02, 1e-12);
  EXPECT_NEAR(rate({"--scale-lr", "none"}), 0.01, 1e-12);
  EXPECT_NEAR(rate({"--scale-lr", "linear", "--base-batch", "256"}), 0.01, 1e-12);
  EXPECT_NEAR(rate({}), 0.04, 1e-12);                       // sgd
  EXPECT_NEAR(rate({"--optimizer", "adam"}), 0.02, 1e-12);  // adaptive
}

TEST(TrainOptions, SchedulesEndWhereTheirFormulasSay) {
  // Of 11 steps the last has rate(10), and curves end at step 11.
  const auto last_rate = [](const std::vector<std::string>& options) {
    const auto events = train(
        with({"--devices", "1", "--scale-lr", "none", "--warmup", "0", "--lr", "0.1", "--max-steps", "11"}, options));
    return of_kind(events, "step").back()["learning_rate"].get<double>();
  };
  const double left = 1.0 / 11;
  EXPECT_NEAR(last_rate({"--schedule", "constant"}), 0.1, 1e-12);
  EXPECT_NEAR(last_rate({"--schedule", "linear", "--schedule-to", "0.05"}), 0.05 + 0.05 * left, 1e-12);
  EXPECT_NEAR(last_rate({"--schedule", "polynomial", "--schedule-power", "3"}), 0.1 * std::pow(left, 3), 1e-12);
  EXPECT_NEAR(last_rate({"--schedule", "cosine"}), 0.05 * (1 + std::cos(M_PI * 10 / 11)), 1e-12);
  EXPECT_NEAR(last_rate({"--schedule", "step", "--schedule-every", "5", "--schedule-gamma", "0.5"}), 0.025, 1e-12);
  EXPECT_NEAR(last_rate({"--schedule", "exponential", "--schedule-gamma", "0.9", "--schedule-every", "1"}),
              0.1 * std::pow(0.9, 10), 1e-12);
  EXPECT_NEAR(last_rate({"--schedule", "one-cycle"}), 0.1 / 25 / 1e4, 1e-12);
}

TEST(TrainOptions, PrintScheduleDrawsTheRateAndTrainsNothing) {
  const Finished ran = run_train({"--print-schedule", "--devices", "2", "--schedule", "linear"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_THAT(ran.out, AllOf(HasSubstr("0.04 = 0.02 × 128/64"), HasSubstr("0.04 ┤"), HasSubstr("linear to 0"),
                             HasSubstr("2344"), Not(HasSubstr("loss"))));
}

TEST(TrainOptions, EvaluatesOnTheWayWithoutAnEffectOnTheTraining) {
  const std::vector<std::string> run = {"--max-steps", "12", "--devices", "2"};
  const auto events = train(with(run, {"--eval-every", "5"}));
  const auto evaluations = of_kind(events, "evaluation");
  ASSERT_EQ(evaluations.size(), 2U);
  EXPECT_EQ(evaluations[0]["steps"], 5);
  EXPECT_EQ(evaluations[1]["steps"], 10);
  EXPECT_EQ(evaluations[1]["test_rows"], 10'000);
  EXPECT_EQ(losses_of(events), losses_of(train(run)));
  // What an evaluation sees is what a run that ends there has.
  const auto shorter = train({"--max-steps", "5", "--devices", "2", "--schedule", "constant", "--warmup", "0"});
  const auto longer =
      train({"--max-steps", "6", "--devices", "2", "--schedule", "constant", "--warmup", "0", "--eval-every", "5"});
  EXPECT_EQ(of_kind(longer, "evaluation").at(0)["test_loss"], shorter.back()["test_loss"]);
}

TEST(TrainOptions, MeasuresTheNoiseScaleWhenAsked) {
  const auto events = of_kind(train({"--max-steps", "12", "--devices", "2", "--noise-scale-every", "4"}), "step");
  EXPECT_TRUE(events.back().contains("noise_scale"));
  const auto without = of_kind(train({"--max-steps", "2", "--devices", "2"}), "step");
  EXPECT_FALSE(without.back().contains("noise_scale"));
}

TEST(TrainOptions, ClipsGradientsByNorm) {
  for (const json& step : of_kind(train({"--max-steps", "5", "--devices", "2", "--clip", "0.25"}), "step")) {
    EXPECT_NEAR(step["clip_factor"].get<double>(), 0.25 / step["gradient_norm"].get<double>(), 1e-4);
  }
}

TEST(TrainOptions, TrainsInHalfPrecisionWithALossScale) {
  const auto events =
      train({"--max-steps", "60", "--devices", "2", "--precision", "bfloat16", "--loss-scale", "dynamic"});
  EXPECT_EQ(events.front()["precision"], "bfloat16");
  EXPECT_EQ(events[1]["loss_scale"], 65536);
  EXPECT_LT(losses_of(events).back(), 1.0);
  // Half of the digits: other losses than in full, and near them.
  const auto full = losses_of(train({"--max-steps", "60", "--devices", "2"}));
  EXPECT_NE(losses_of(events)[0], full[0]);
  EXPECT_NEAR(losses_of(events)[0], full[0], 0.02);
}

TEST(TrainOptions, SkipsStepsThatAreNotFiniteWhenAsked) {
  const auto events = train(
      {"--lr", "100000", "--devices", "2", "--max-steps", "100", "--non-finite", "skip", "--schedule", "constant"});
  const auto steps = of_kind(events, "step");
  ASSERT_EQ(steps.size(), 100U);
  std::int64_t skipped = 0;
  for (const json& step : steps) skipped += step["skipped"].get<bool>() ? 1 : 0;
  EXPECT_GT(skipped, 0);
  EXPECT_EQ(events.back()["skipped_steps"], skipped);
}

TEST(TrainOptions, SaysWhereTheTimeWent) {
  const json end = train({"--max-steps", "20", "--devices", "2", "--quiet"}).back();
  double named = 0;
  for (const auto& [name, seconds] : end["times"].items()) {
    EXPECT_GE(seconds.get<double>(), 0) << name;
    named += seconds.get<double>();
  }
  EXPECT_EQ(end["times"].size(), 5U);
  EXPECT_LE(named, end["seconds"].get<double>());
  EXPECT_GT(end["efficiency"].get<double>(), 0);
  EXPECT_LE(end["efficiency"].get<double>(), 1);
}

TEST(TrainOptions, ContradictionsAreRefusedWithWhatToGiveInstead) {
  EXPECT_THAT(refusal({"--logical-shards", "4", "--per-device-batch", "8"}),
              HasSubstr("--per-device-batch does not go with --logical-shards"));
  EXPECT_THAT(refusal({"--logical-shards", "4", "--accumulate", "2"}),
              HasSubstr("--accumulate does not go with --logical-shards"));
  EXPECT_THAT(refusal({"--global-batch", "64", "--per-device-batch", "8"}), HasSubstr("give one"));
  EXPECT_THAT(refusal({"--global-batch", "100", "--logical-shards", "8"}),
              HasSubstr("cannot be cut into 8 equal parts, one for each logical shard: 96 or 104 can"));
  EXPECT_THAT(refusal({"--global-batch", "1", "--devices", "2"}), HasSubstr("each device and micro-batch: 2 can"));
  EXPECT_THAT(refusal({"--clip", "1", "--clip-value", "1"}), HasSubstr("give one"));
  EXPECT_THAT(refusal({"--optimizer", "adam", "--momentum", "0.5"}), HasSubstr("--momentum has no meaning for adam"));
  EXPECT_THAT(refusal({"--schedule-gamma", "0.5"}),
              HasSubstr("--schedule-gamma has no meaning with --schedule cosine"));
  EXPECT_THAT(refusal({"--max-steps", "10", "--warmup", "10"}), HasSubstr("--warmup 10: the run has 10 steps"));
  EXPECT_THAT(refusal({"--loss-scale", "much"}), HasSubstr("--loss-scale takes a number above 0, or \"dynamic\""));
  EXPECT_THAT(refusal({"--model", "cnn", "--sync-bn"}), HasSubstr("--sync-bn has no meaning for --model cnn"));
  EXPECT_THAT(refusal({"--dropout", "0.1"}),
              HasSubstr("--dropout has no meaning for --model mlp: cnn and transformer take it"));
}

TEST(TrainOptions, NamesThatDoNotExistGetTheNearest) {
  EXPECT_THAT(refusal({"--optimizer", "adma"}), HasSubstr("there is no optimizer \"adma\""));
  EXPECT_THAT(refusal({"--schedule", "cosin"}), HasSubstr("Is \"cosine\" meant?"));
  EXPECT_THAT(refusal({"--scale-lr", "liner"}), HasSubstr("Is \"linear\" meant?"));
  EXPECT_THAT(refusal({"--precision", "float16"}), HasSubstr("there are \"float32\" and \"bfloat16\""));
  EXPECT_THAT(refusal({"--non-finite", "ignore"}), HasSubstr("there are \"stop\" and \"skip\""));
}

}  // namespace train_options_test
}  // namespace brigade
