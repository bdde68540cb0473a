// `brigade train` as a whole process, and the JSON that it prints.
#pragma once

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "support/process.h"

namespace brigade {

inline std::vector<nlohmann::json> events_of(const std::string& out) {
  std::vector<nlohmann::json> events;
  std::istringstream lines(out);
  for (std::string line; std::getline(lines, line);) events.push_back(nlohmann::json::parse(line));
  return events;
}

inline Finished run_train(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {BRIGADE_PROGRAM, "train"});
  return run_process(arguments);
}

// The events of a run that ends well.
inline std::vector<nlohmann::json> train(std::vector<std::string> arguments) {
  arguments.emplace_back("--json");
  const Finished ran = run_train(arguments);
  EXPECT_EQ(ran.code, 0) << ran.err;
  return events_of(ran.out);
}

inline std::vector<nlohmann::json> of_kind(const std::vector<nlohmann::json>& events, const std::string& kind) {
  std::vector<nlohmann::json> some;
  for (const nlohmann::json& event : events) {
    if (event["event"] == kind) some.push_back(event);
  }
  return some;
}

inline std::vector<double> losses_of(const std::vector<nlohmann::json>& events) {
  std::vector<double> losses;
  for (const nlohmann::json& event : of_kind(events, "step")) losses.push_back(event["loss"]);
  return losses;
}

// What such a run says on its error output.
inline std::string refusal(const std::vector<std::string>& arguments, int code = 2) {
  const Finished ran = run_train(arguments);
  EXPECT_EQ(ran.code, code) << ran.err;
  EXPECT_EQ(ran.out, "");
  return ran.err;
}

}  // namespace brigade
