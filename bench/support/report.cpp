#include "support/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <thread>

#include "support/exchange.h"
#include "support/rounds.h"

namespace brigade::bench {
namespace {

nlohmann::json as_json(const Row& row) {
  nlohmann::json json = {
      {"name", row.name}, {"ours", row.ours}, {"unit", row.unit}, {"judged", row.judged}, {"about", row.about}};
  if (row.peer) {
    json.update({{"peer", *row.peer},
                 {"ratio", row.ratio},
                 {"ratio_min", row.ratio_min},
                 {"ratio_max", row.ratio_max},
                 {"goal", row.goal ? nlohmann::json(*row.goal) : nlohmann::json(nullptr)}});
  }
  return json;
}

bool missed(const Row& row) { return row.goal && row.judged && row.ratio < *row.goal; }

std::string verdict(const Row& row) {
  if (!row.goal) return row.judged ? "" : "not judged";
  return fmt::format("{:.2f}: {}", *row.goal, !row.judged ? "not judged" : missed(row) ? "missed" : "met");
}

void print_table(const std::vector<Row>& rows) {
  std::size_t name = 4;
  std::size_t unit = 4;
  for (const Row& row : rows) {
    name = std::max(name, row.name.size());
    unit = std::max(unit, row.unit.size());
  }
  fmt::print("{:<{}} {:>12} {:>12} {:<{}} {:>8} {:>17} {:>18}\n", "name", name, "ours", "peer", "unit", unit, "ratio",
             "lowest - highest", "goal");
  for (const Row& row : rows) {
    const bool alone = !row.peer;
    fmt::print("{:<{}} {:>12.3f} {:>12} {:<{}} {:>8} {:>17} {:>18}\n", row.name, name, row.ours,
               alone ? "" : fmt::format("{:.3f}", *row.peer), row.unit, unit,
               alone ? "" : fmt::format("{:.2f}", row.ratio),
               alone ? "" : fmt::format("{:.2f} - {:.2f}", row.ratio_min, row.ratio_max), verdict(row));
  }
  fmt::print("ours, peer, ratio: medians over rounds; a ratio above 1 means that ours is better\n");
  if (std::all_of(rows.begin(), rows.end(), [](const Row& row) { return row.judged; })) return;
  fmt::print(
      "not judged: fewer than {} rounds with an exchange of at most {:.0f} ns, so those figures are of all rounds\n",
      kJudgedRounds, close_cores_nanoseconds());
}

}  // namespace

Report::Report(std::string name) : name_(std::move(name)) {
  fmt::print("{} on {}\n4-byte exchange between two threads: {:.0f} ns\n", name_, machine(), exchange_nanoseconds());
  std::fflush(stdout);  // before what the rounds write to stderr
}

int Report::finish() const {
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

  return std::any_of(rows_.begin(), rows_.end(), missed) ? 1 : 0;
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
