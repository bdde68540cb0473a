// Training as a whole process, on the real images.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <regex>

#include "events.h"

namespace brigade {
namespace train_test {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

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

TEST(TrainCommand, PrintsOnlyTheEndOfJsonWhenQuiet) {
  const auto events = train({"--quiet", "--max-steps", "3", "--devices", "2"});
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(events[0]["event"], "end");
  EXPECT_EQ(events[0]["steps"], 3);
}

TEST(TrainCommand, RenewsOneLineThatFitsTheTerminalAndEndsWithTheTable) {
  for (const unsigned short columns : {80, 50}) {
    SCOPED_TRACE(columns);
    const Finished ran =
        run_process({BRIGADE_PROGRAM, "train", "--epochs", "1", "--devices", "2"}, {}, Terminal{.columns = columns});
    EXPECT_EQ(ran.code, 0) << ran.err;
    const std::string renewal = "\r\033[K";
    int lines = 0;
    std::size_t end = 0;
    for (std::size_t at = ran.out.find(renewal); at != std::string::npos; at = ran.out.find(renewal, end)) {
      const std::size_t start = at + renewal.size();
      end = ran.out.find_first_of("\r\n", start);
      ASSERT_NE(end, std::string::npos);
      EXPECT_LT(end - start, columns) << ran.out.substr(start, end - start);
      EXPECT_THAT(ran.out.substr(start, end - start), AllOf(HasSubstr("step "), HasSubstr("loss "), HasSubstr("left")));
      ++lines;
    }
    EXPECT_GE(lines, 2);
    EXPECT_THAT(ran.out.substr(end), AllOf(HasSubstr("test accuracy"), HasSubstr("cpu:1")));
    EXPECT_THAT(ran.out, HasSubstr("step 469/469"));
  }
}

// The number that the first group of `pattern` finds.
int number_in(const std::string& text, const std::string& pattern) {
  std::smatch match;
  EXPECT_TRUE(std::regex_search(text, match, std::regex(pattern))) << text;
  return match.empty() ? -1 : std::stoi(match[1]);
}

TEST(TrainCommand, StopsAtALossThatIsNotFiniteWithStepDeviceAndAdvice) {
  const Finished ran =
      run_process({BRIGADE_PROGRAM, "train", "--lr", "100000", "--devices", "2", "--max-steps", "300", "--json"});
  EXPECT_EQ(ran.code, 4);
  const int step = number_in(ran.err,
                             "the loss became (?:-?nan|inf) in step ([0-9]+), at learning rate [0-9.e+]+\\. "
                             ".*try --lr .* \\(axis \"devices\", device [01]\\)\n");
  // For people steps count from 1: those before it were completed, and are numbered from 0 in the JSON.
  EXPECT_EQ(events_of(ran.out).back()["step"], step - 2);
}

TEST(TrainCommand, StopsAtAnUpdateThatRuinsTheParametersInTheLastStep) {
  const Finished ran = run_process({BRIGADE_PROGRAM, "train", "--lr", "1e38", "--devices", "2", "--max-steps", "1"});
  EXPECT_EQ(ran.code, 4);
  EXPECT_EQ(number_in(ran.err,
                      "the loss became (?:-?nan|inf) on the test images, after step ([0-9]+)\\. "
                      ".*try --lr .* \\(axis \"devices\", device [01]\\)\n"),
            1);
}

TEST(TrainCommand, FinishesTheStepAndPrintsTheTableOnCtrlC) {
  // Batches so large that an epoch, which ends with a line, takes a moment.
  Process process({BRIGADE_PROGRAM, "train", "--devices", "2", "--per-device-batch", "2048", "--epochs", "1000"});
  for (std::optional<std::string> line; (line = process.read_line());) {
    if (line->rfind("step ", 0) == 0) break;
  }
  process.send(SIGINT);
  EXPECT_EQ(process.wait(), 130);
  const int done = number_in(process.out(), "Interrupted after step ([0-9]+) of 15000\\.\n");
  EXPECT_GE(done, 15);
  EXPECT_LT(done, 15'000);
  EXPECT_THAT(process.out(), AllOf(HasSubstr("test accuracy"), HasSubstr("of 10,000"), HasSubstr("cpu:1")));
}

TEST(TrainCommand, EndsWithTheSameCodeWhenCtrlCComesDuringTheEvaluation) {
  Process process({BRIGADE_PROGRAM, "train", "--json", "--model", "cnn", "--max-steps", "1", "--devices", "2"});
  for (std::optional<std::string> line; (line = process.read_line());) {
    if (json::parse(*line)["event"] == "step") break;
  }
  process.send(SIGINT);
  EXPECT_EQ(process.wait(), 130);
  const json end = events_of(process.out()).back();
  EXPECT_EQ(end["event"], "end");
  EXPECT_EQ(end["interrupted"], true);
  EXPECT_EQ(end["steps"], 1);
  EXPECT_EQ(end["test_rows"], 10'000);
}

TEST(TrainCommand, EndsItsJsonWithTheTableOnCtrlC) {
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

}  // namespace train_test
}  // namespace brigade
