// Training as a whole process, on the real images.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <nlohmann/json.hpp>
#include <sstream>

#include "support/process.h"

namespace brigade {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

std::vector<json> events_of(const std::string& out) {
  std::vector<json> events;
  std::istringstream lines(out);
  for (std::string line; std::getline(lines, line);) events.push_back(json::parse(line));
  return events;
}

std::vector<json> train(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {BRIGADE_PROGRAM, "train", "--json"});
  const Finished ran = run_process(arguments);
  EXPECT_EQ(ran.code, 0) << ran.err;
  return events_of(ran.out);
}

TEST(TrainCommand, TrainsForOneEpochAndSaysSoInJson) {
  const auto events = train({"--devices", "2", "--epochs", "1"});
  ASSERT_EQ(events.size(), 1 + 469 + 1U);
  EXPECT_EQ(events.front()["event"], "begin");
  EXPECT_EQ(events.front()["parameters"], 784 * 128 + 128 + 128 * 10 + 10);
  EXPECT_EQ(events.front()["global_batch"], 128);

  std::int64_t rows = 0;
  for (std::size_t i = 1; i + 1 < events.size(); ++i) {
    EXPECT_EQ(events[i]["event"], "step");
    EXPECT_EQ(events[i]["step"], i - 1);
    rows += events[i]["rows"].get<std::int64_t>();
  }
  EXPECT_EQ(rows, 60'000);
  EXPECT_EQ(events[469]["rows"], 60'000 - 468 * 128);  // the last step takes what is left
  EXPECT_NEAR(events[1]["learning_rate"].get<double>(), 0.02, 1e-12);
  EXPECT_NEAR(events[101]["learning_rate"].get<double>(), 0.04, 1e-12);

  const json& end = events.back();
  EXPECT_EQ(end["event"], "end");
  EXPECT_EQ(end["steps"], 469);
  EXPECT_EQ(end["devices"], 2);
  EXPECT_EQ(end["test_rows"], 10'000);
  EXPECT_DOUBLE_EQ(end["test_accuracy"].get<double>(), end["test_correct"].get<double>() / 10'000);
  EXPECT_GT(end["test_accuracy"].get<double>(), 0.82);
  EXPECT_LT(end["test_loss"].get<double>(), 0.55);
  EXPECT_GT(end["samples_per_second"].get<double>(), 0);
  ASSERT_EQ(end["per_device"].size(), 2U);
  EXPECT_GT(end["per_device"][1]["compute_seconds"].get<double>(), 0);
}

TEST(TrainCommand, ReachesTheAccuracyOfFiveEpochs) {
  EXPECT_GE(train({"--devices", "2"}).back()["test_accuracy"].get<double>(), 0.875);
}

TEST(TrainCommand, GivesTheSameBitsForTheSameSeedAndOthersForAnother) {
  const auto losses = [](const std::string& seed) {
    std::vector<double> all;
    for (const json& event : train({"--devices", "3", "--max-steps", "60", "--seed", seed})) {
      if (event["event"] == "step") all.push_back(event["loss"]);
      if (event["event"] == "end") all.push_back(event["test_loss"]);
    }
    return all;
  };
  const auto first = losses("5");
  ASSERT_EQ(first.size(), 61U);
  EXPECT_EQ(first, losses("5"));
  EXPECT_NE(first, losses("6"));
}

TEST(TrainCommand, TrainsTheConvolutionalNetworkOnMoreDevicesThanCores) {
  const auto events = train({"--model", "cnn", "--devices", "5", "--per-device-batch", "8", "--max-steps", "60"});
  EXPECT_LT(events[60]["loss"].get<double>(), 1.4);  // 2.3 at the start
  EXPECT_EQ(events.back()["test_rows"], 10'000);
}

TEST(TrainCommand, KeepsDevicesWithoutRowsInStep) {
  // Six devices take 9,000 rows each, the seventh 6,000, and four none.
  const auto events = train({"--devices", "11", "--per-device-batch", "9000", "--epochs", "2"});
  EXPECT_EQ(events[1]["rows"], 60'000);
  EXPECT_LT(events[2]["loss"].get<double>(), events[1]["loss"].get<double>());
}

TEST(TrainCommand, PrintsPlainLinesAndATableWhereThereIsNoTerminal) {
  const Finished ran = run_process({BRIGADE_PROGRAM, "train", "--max-steps", "3", "--devices", "2"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_THAT(ran.out, AllOf(HasSubstr("0.04 = 0.02 × 128/64"), HasSubstr("step 3/3"), HasSubstr("test accuracy"),
                             HasSubstr("of 10,000"), HasSubstr("samples/s"), HasSubstr("communication"),
                             HasSubstr("cpu:1"), Not(HasSubstr("\r"))));
  const Finished quiet = run_process({BRIGADE_PROGRAM, "train", "--max-steps", "3", "--devices", "2", "--quiet"});
  EXPECT_THAT(quiet.out, AllOf(Not(HasSubstr("step 3/3")), HasSubstr("test accuracy")));
}

TEST(TrainCommand, StopsAtALossThatIsNotFiniteWithStepDeviceAndAdvice) {
  const Finished ran =
      run_process({BRIGADE_PROGRAM, "train", "--lr", "100000", "--devices", "2", "--max-steps", "300", "--json"});
  EXPECT_EQ(ran.code, 4);
  EXPECT_THAT(ran.err,
              AllOf(HasSubstr("the loss became"), HasSubstr("in step "), HasSubstr("device "), HasSubstr("try --lr")));
}

TEST(TrainCommand, FinishesTheStepAndPrintsTheTableOnCtrlC) {
  Process process({BRIGADE_PROGRAM, "train", "--json", "--epochs", "1000"});
  for (std::optional<std::string> line; (line = process.read_line());) {
    if (json::parse(*line)["event"] == "step") break;
  }
  process.send(SIGINT);
  EXPECT_EQ(process.wait(), 130);
  const json end = events_of(process.out()).back();
  EXPECT_EQ(end["event"], "end");
  EXPECT_EQ(end["interrupted"], true);
  EXPECT_GE(end["steps"].get<int>(), 1);
  EXPECT_EQ(end["test_rows"], 10'000);
}

}  // namespace
}  // namespace brigade
