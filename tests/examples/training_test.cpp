// The training examples as whole processes, for a few steps.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <regex>
#include <string>
#include <vector>

#include "support/process.h"

namespace brigade {
namespace training_test {

using testing::HasSubstr;

std::string run_example(const std::string& program, const std::string& steps, int devices) {
  const Finished ran = run_process({program, steps}, {"BRIGADE_CPU_DEVICES=" + std::to_string(devices)});
  EXPECT_EQ(ran.code, 0) << ran.err;
  return ran.out;
}

// All that the first group of `pattern` finds.
std::vector<double> numbers_in(const std::string& text, const std::string& pattern) {
  std::vector<double> numbers;
  const std::regex expression(pattern);
  for (auto it = std::sregex_iterator(text.begin(), text.end(), expression); it != std::sregex_iterator(); ++it) {
    numbers.push_back(std::stod((*it)[1]));
  }
  return numbers;
}

constexpr const char* kLoss = "loss = ([0-9.]+)";

TEST(TrainingExamples, FashionCnnLearnsAndPrintsTheSameOnAnyNumberOfDevices) {
  const std::string out = run_example(BRIGADE_FASHION_CNN, "120", 2);
  const auto losses = numbers_in(out, kLoss);
  ASSERT_EQ(losses.size(), 3U);  // after 0, 50 and 100 steps
  EXPECT_NEAR(losses[0], std::log(10.0), 0.3);
  EXPECT_LT(losses[2], 1.0);
  EXPECT_GT(numbers_in(out, "test accuracy: ([0-9.]+)").at(0), 0.7);
  EXPECT_EQ(run_example(BRIGADE_FASHION_CNN, "3", 1), run_example(BRIGADE_FASHION_CNN, "3", 4));
}

TEST(TrainingExamples, AStructOfTensorsLearnsToImitate) {
  const std::string out = run_example(BRIGADE_CUSTOM_STRUCT, "300", 2);
  const auto losses = numbers_in(out, kLoss);
  ASSERT_GE(losses.size(), 9U);
  EXPECT_LT(losses.back(), losses.front() / 20);
  EXPECT_LT(numbers_in(out, "error on new rows: ([0-9.]+)").at(0), losses.front() / 20);
  EXPECT_EQ(run_example(BRIGADE_CUSTOM_STRUCT, "5", 1), run_example(BRIGADE_CUSTOM_STRUCT, "5", 4));
}

TEST(TrainingExamples, AGeneratorComesNearTheCircleThatADiscriminatorKnows) {
  const std::string distance = "mean distance from the circle: ([0-9.]+)";
  const double before = numbers_in(run_example(BRIGADE_GAN, "1", 2), distance).at(0);
  const double after = numbers_in(run_example(BRIGADE_GAN, "600", 2), distance).at(0);
  EXPECT_GT(before, 1);  // of a radius of 2
  EXPECT_LT(after, 0.6);
  EXPECT_EQ(run_example(BRIGADE_GAN, "5", 1), run_example(BRIGADE_GAN, "5", 4));
}

TEST(TrainingExamples, AnOptimizerOfLibtorchTakesTheStepsOfOurRule) {
  const std::string out = run_example(BRIGADE_TORCH_OPTIMIZER, "40", 2);
  const auto by_torch = numbers_in(out, "loss = ([0-9.]+) by torch");
  const auto by_rule = numbers_in(out, "([0-9.]+) by optim");
  ASSERT_GE(by_torch.size(), 8U);
  ASSERT_EQ(by_torch.size(), by_rule.size());
  for (std::size_t i = 0; i < by_torch.size(); ++i) EXPECT_NEAR(by_torch[i], by_rule[i], 2e-4);
  EXPECT_LT(by_torch.back(), by_torch.front() / 2);
}

TEST(TrainingExamples, AResnetNormalisesOverAllRowsOnAnyNumberOfDevices) {
  const std::string out = run_example(BRIGADE_RESNET, "101", 2);
  const auto losses = numbers_in(out, kLoss);
  ASSERT_EQ(losses.size(), 3U);
  EXPECT_LT(losses[2], 1.0);
  EXPECT_GT(numbers_in(out, "test accuracy: ([0-9.]+)").at(0), 0.7);
  EXPECT_EQ(run_example(BRIGADE_RESNET, "3", 1), run_example(BRIGADE_RESNET, "3", 4));
}

TEST(TrainingExamples, ALanguageModelLearnsAndWrites) {
  const std::string out = run_example(BRIGADE_TRANSFORMER, "30", 2);
  const auto losses = numbers_in(out, kLoss);
  ASSERT_GE(losses.size(), 8U);
  EXPECT_NEAR(losses.front(), std::log(256.0), 0.6);
  EXPECT_LT(losses.back(), 3.8);
  EXPECT_THAT(out, HasSubstr("\nThe "));
}

TEST(TrainingExamples, SayHowTheyAreCalled) {
  const Finished ran = run_process({BRIGADE_GAN, "many"});
  EXPECT_EQ(ran.code, 1);
  EXPECT_THAT(ran.err, HasSubstr("[STEPS], a whole number above 0"));
}

}  // namespace training_test
}  // namespace brigade
