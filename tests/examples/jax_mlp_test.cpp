// The program in C++ against what the one in JAX printed and computed.
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "support/case_files.h"
#include "support/process.h"

namespace brigade {
namespace jax_mlp_test {

using nlohmann::json;

// Another BLAS rounds differently. Printed lines agree but for the last digit, where the recorded loss lies within the
// losses' tolerance of a border between two roundings.
constexpr double kLossTolerance = 2e-6;

void expect_line(const std::string& line, const std::string& recorded_line, double recorded_loss) {
  if (line == recorded_line) return;
  const double border = (std::floor(recorded_loss * 1e4 - 0.5) + 0.5) * 1e-4;
  const double distance = std::min(std::abs(recorded_loss - border), std::abs(recorded_loss - border - 1e-4));
  EXPECT_LE(distance, kLossTolerance) << line << " instead of " << recorded_line;
  EXPECT_EQ(line.substr(0, line.rfind(' ')), recorded_line.substr(0, recorded_line.rfind(' ')));
  EXPECT_NEAR(std::stod(line.substr(line.rfind(' '))), recorded_loss, 1e-4);
}

// The lines of one run, as JAX printed them.
void expect_printed(std::istream& lines, const json& c) {
  const auto devices = c["devices"].get<std::int64_t>();
  std::string line;
  std::getline(lines, line);
  EXPECT_EQ(line, "设备数: " + std::to_string(devices) +
                      ", 全局批大小: " + std::to_string(devices * c["per_device_batch"].get<std::int64_t>()));
  for (std::size_t step = 0; step < c["printed"].size(); ++step) {
    std::getline(lines, line);
    expect_line(line, c["printed"][step], c["loss_of_device_0_after_step"][step]);
  }
}

void expect_parameters(const std::vector<double>& values, const json& expected) {
  std::size_t count = 1;
  for (const std::size_t size : expected["shape"]) count *= size;
  ASSERT_EQ(values.size(), count);
  const json& first = expected["first_8"]["data"];
  for (std::size_t i = 0; i < first.size(); ++i) EXPECT_NEAR(values[i], first[i].get<double>(), 1e-6);
  double sum = 0, squares = 0;
  for (const double v : values) {
    sum += v;
    squares += v * v;
  }
  EXPECT_NEAR(sum, expected["sum"].get<double>(), 1e-5);
  EXPECT_NEAR(squares, expected["sum_of_squares"].get<double>(), 1e-5 * expected["sum_of_squares"].get<double>());
}

// The example has numbers of its own, so its lines are those of our copy of the file.
TEST(JaxMlp, PrintsTheLinesOfJaxOnAnyNumberOfDevices) {
  const json file = cases::load_own("jax/mlp.json");
  std::vector<int> tested;
  for (const json& c : file["cases"]) {
    const int devices = tested.emplace_back(c["devices"]);
    SCOPED_TRACE(devices);
    const Finished ran = run_process({BRIGADE_JAX_MLP, "--devices", std::to_string(devices)});
    ASSERT_EQ(ran.code, 0) << ran.err;
    std::istringstream lines(ran.out);
    expect_printed(lines, c);
    EXPECT_EQ(lines.peek(), std::char_traits<char>::eof());
  }
  EXPECT_EQ(tested, (std::vector<int>{1, 2, 4, 8}));
}

TEST(JaxMlp, ComputesTheLossesAndParametersOfJaxForTheNumbersOfTheFile) {
  const json file = cases::load("jax/mlp.json");
  ASSERT_FALSE(file["cases"].empty());
  for (const json& c : file["cases"]) {
    SCOPED_TRACE(c["devices"]);
    const Finished ran = run_process({BRIGADE_JAX_MLP_REPORT, c["devices"].dump(), c["key_seed"].dump(),
                                      c["per_device_batch"].dump(), c["learning_rate"].dump()});
    ASSERT_EQ(ran.code, 0) << ran.err;
    std::istringstream lines(ran.out);
    expect_printed(lines, c);
    const json ours = json::parse(lines);
    const json& losses = c["loss_of_device_0_after_step"];
    ASSERT_EQ(ours["losses"].size(), losses.size());
    for (std::size_t step = 0; step < losses.size(); ++step) {
      EXPECT_NEAR(ours["losses"][step].get<double>(), losses[step].get<double>(), kLossTolerance);
    }
    ASSERT_EQ(ours["final"].size(), c["final"].size());
    for (const auto& [name, expected] : c["final"].items()) {
      SCOPED_TRACE(name);
      expect_parameters(ours["final"][name], expected);
    }
  }
}

TEST(JaxMlp, RefusesDevicesThatAreNone) {
  for (const std::string value : {"0", "-1", "x", "2x", "1025"}) {
    const Finished ran = run_process({BRIGADE_JAX_MLP, "--devices", value});
    EXPECT_EQ(ran.code, 1);
    EXPECT_EQ(ran.err, "jax_mlp: --devices takes a whole number from 1 to 1024, not \"" + value + "\"\n");
  }
  const Finished ran = run_process({BRIGADE_JAX_MLP, "--device=2"});
  EXPECT_EQ(ran.code, 1);
  EXPECT_NE(ran.err.find("usage: jax_mlp [--devices N]"), std::string::npos);
}

}  // namespace jax_mlp_test
}  // namespace brigade
