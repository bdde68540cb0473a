// Several ways to do the same, measured by turns: ours, and those that it is compared with.
#pragma once

#include <chrono>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "support/report.h"

namespace brigade::bench {

struct Entrant {
  std::string name;
  std::function<double(int calls)> nanoseconds;  // of one call
  std::optional<double> goal = {};               // how many times faster than this one ours is to be
  std::vector<double> taken = {};                // by round
};

struct Contest {
  std::string name;
  nlohmann::json about = nlohmann::json::object();  // Row::about, without the peer
  std::vector<Entrant> entrants = {};               // ours is the first
  std::vector<double> exchanges = {};               // exchange_nanoseconds() by round
  enum class Unit { kNanoseconds, kMicroseconds, kCallsPerSecond } unit = Unit::kMicroseconds;
};

// Measures every entrant for about `time` a round, beginning with another one each time, until the contest has been close
// (rounds.h) often enough to be judged. Adds a row for every entrant that ours is compared with, but for those that threw
// PeerAbsent; in calls per second, one row for ours alone. Row::about gets the median of the exchanges that it rests on.
void hold(std::vector<Contest> contests, std::chrono::nanoseconds time, Report& report);

}  // namespace brigade::bench
