// What a bench found: a table for people and build/bench/<name>.json for programs.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace brigade::bench {

struct Row {
  std::string name;
  double ours = 0;
  std::optional<double> peer = {};  // none: ours stands alone, without a ratio
  std::string unit;
  double ratio = 0;  // how many times better ours is, the median of rounds
  double ratio_min = 0;
  double ratio_max = 0;
  std::optional<double> goal = {};  // for `ratio`
  bool judged = false;              // whether the figures rest on enough rounds of close cores to judge the goal by
  nlohmann::json about = nlohmann::json::object();  // what programs that read the file may look for
};

class Report {
 public:
  // Prints what is measured, where, and the time of a 4-byte exchange (exchange.h).
  explicit Report(std::string name);

  void add(Row row) { rows_.push_back(std::move(row)); }

  // Something that was left out and why.
  void note(std::string text) { notes_.push_back(std::move(text)); }

  // Prints the table and writes the file. The exit status of the bench: 1 when a row is judged and misses its goal,
  // else 0. Throws std::runtime_error when the file cannot be written.
  int finish() const;

 private:
  std::string name_;
  std::vector<Row> rows_;
  std::vector<std::string> notes_;
};

// Processor and number of cores of this machine.
std::string machine();

}  // namespace brigade::bench
