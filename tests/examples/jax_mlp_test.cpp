// The program in C++ against what the one in JAX printed and computed.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "support/process.h"

namespace brigade {
namespace {

using nlohmann::json;

json read_json(const std::filesystem::path& file) {
  std::ifstream in(file);
  EXPECT_TRUE(in) << file;
  return json::parse(in);
}

json recorded() {
  const char* folder = std::getenv("BRIGADE_CASES");
  return read_json(std::filesystem::path(folder != nullptr ? folder : BRIGADE_TEST_CASES) / "jax" / "mlp.json");
}

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

TEST(JaxMlp, PrintsTheLinesAndEndsWithTheParametersOfJaxOnAnyNumberOfDevices) {
  const json file = recorded();
  ASSERT_EQ(file["cases"].size(), 4U);
  for (const json& c : file["cases"]) {
    const std::string devices = std::to_string(c["devices"].get<int>());
    SCOPED_TRACE(devices + " devices");
    const auto save = std::filesystem::temp_directory_path() / ("brigade-jax-mlp-" + devices + ".json");
    const Finished ran =
        run_process({BRIGADE_JAX_MLP, "--devices", devices, "--seed", std::to_string(c["key_seed"].get<std::int64_t>()),
                     "--per-device-batch", std::to_string(c["per_device_batch"].get<int>()), "--learning-rate",
                     std::to_string(c["learning_rate"].get<double>()), "--save", save.string()});
    ASSERT_EQ(ran.code, 0) << ran.err;

    std::istringstream lines(ran.out);
    std::string line;
    std::getline(lines, line);
    EXPECT_EQ(line, "设备数: " + devices +
                        ", 全局批大小: " + std::to_string(c["devices"].get<int>() * c["per_device_batch"].get<int>()));
    const json ours = read_json(save);
    for (std::size_t step = 0; step < c["printed"].size(); ++step) {
      std::getline(lines, line);
      const double loss = c["loss_of_device_0_after_step"][step];
      expect_line(line, c["printed"][step], loss);
      EXPECT_NEAR(ours["losses"][step].get<double>(), loss, kLossTolerance);
    }

    for (const auto& [name, expected] : c["final"].items()) {
      SCOPED_TRACE(name);
      const auto values = ours["final"][name].get<std::vector<double>>();
      double sum = 0, squares = 0;
      for (const double v : values) {
        sum += v;
        squares += v * v;
      }
      std::size_t count = 1;
      for (const std::size_t size : expected["shape"]) count *= size;
      ASSERT_EQ(values.size(), count);
      for (int i = 0; i < 8; ++i)
        EXPECT_NEAR(values[static_cast<std::size_t>(i)],
                    expected["first_8"]["data"][static_cast<std::size_t>(i)].get<double>(), 1e-6);
      EXPECT_NEAR(sum, expected["sum"].get<double>(), 1e-5);
      EXPECT_NEAR(squares, expected["sum_of_squares"].get<double>(), 1e-5 * expected["sum_of_squares"].get<double>());
    }
    std::filesystem::remove(save);
  }
}

TEST(JaxMlp, RefusesDevicesThatAreNone) {
  for (const std::string value : {"0", "-1", "x"})
    EXPECT_NE(run_process({BRIGADE_JAX_MLP, "--devices=" + value}).code, 0);
}

}  // namespace
}  // namespace brigade
