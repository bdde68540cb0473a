#include "support/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <thread>

#include "support/exchange.h"
#include "support/rounds.h"

namespace brigade::bench {
namespace {

nlohmann::json as_json(const Row& row) {
  return {{"name", row.name},           {"ours", row.ours},
          {"peer", row.peer},           {"unit", row.unit},
          {"ratio", row.ratio},         {"ratio_min", row.ratio_min},
          {"ratio_max", row.ratio_max}, {"goal", row.goal ? nlohmann::json(*row.goal) : nlohmann::json(nullptr)}};
}

std::string verdict(const Row& row) {
  if (!row.goal) return "";
  return fmt::format("{:.2f} {}", *row.goal, row.ratio >= *row.goal ? "met" : "missed");
}

void print_exchanges(const std::vector<double>& exchanges) {
  if (exchanges.empty()) return;
  const auto close = std::count_if(exchanges.begin(), exchanges.end(),
                                   [](double exchange) { return exchange <= kCloseCoresNanoseconds; });
  fmt::print("4-byte exchange between two threads: {:.0f} ns (median of {} rounds; {} with at most {:.0f} ns)\n",
             median(exchanges), exchanges.size(), close, kCloseCoresNanoseconds);
  fmt::print("{}\n", close > 0 ? "judged by those rounds" : "no round had close cores: judged by all rounds");
}

void print_table(const std::vector<Row>& rows) {
  std::size_t width = 4;
  for (const Row& row : rows) width = std::max(width, row.name.size());
  fmt::print("{:<{}} {:>12} {:>12} {:<5} {:>8} {:>17} {:>14}\n", "name", width, "ours", "peer", "unit", "ratio",
             "from - to", "goal");
  for (const Row& row : rows) {
    fmt::print("{:<{}} {:>12.3f} {:>12.3f} {:<5} {:>8.2f} {:>17} {:>14}\n", row.name, width, row.ours, row.peer,
               row.unit, row.ratio, fmt::format("{:.2f} - {:.2f}", row.ratio_min, row.ratio_max), verdict(row));
  }
}

}  // namespace

int Report::finish() const {
  fmt::print("{} on {}\n", name_, machine());
  print_exchanges(exchanges_);
  for (const std::string& note : notes_) fmt::print("note: {}\n", note);
  print_table(rows_);

  nlohmann::json rows = nlohmann::json::array();
  for (const Row& row : rows_) rows.push_back(as_json(row));
  const std::filesystem::path path = std::filesystem::path(BRIGADE_BENCH_OUTPUT) / (name_ + ".json");
  std::filesystem::create_directories(path.parent_path());
  std::ofstream file(path);
  file << nlohmann::json({{"machine", machine()}, {"rows", rows}}).dump(2) << '\n';
  if (!file.flush()) throw std::runtime_error("cannot write " + path.string());
  fmt::print("written to {}\n", path.string());

  return std::all_of(rows_.begin(), rows_.end(), [](const Row& row) { return !row.goal || row.ratio >= *row.goal; })
             ? 0
             : 1;
}

std::string machine() {
  std::string model = "unknown processor";
  std::ifstream cpuinfo("/proc/cpuinfo");
  for (std::string line; std::getline(cpuinfo, line);) {
    const auto colon = line.find(": ");
    if (!line.starts_with("model name") || colon == std::string::npos) continue;
    model = line.substr(colon + 2);
    break;
  }
  return fmt::format("{}, {} cores", model, std::thread::hardware_concurrency());
}

}  // namespace brigade::bench
