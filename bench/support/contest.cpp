#include "support/contest.h"

#include <fmt/format.h>

#include <algorithm>

#include "support/exchange.h"
#include "support/peer.h"
#include "support/rounds.h"

namespace brigade::bench {
namespace {

using Unit = Contest::Unit;

void measure(Entrant& entrant, std::chrono::nanoseconds time) {
  if (!entrant.nanoseconds) return;
  try {
    const double guess = entrant.taken.empty() ? entrant.nanoseconds(3) : entrant.taken.back();
    entrant.taken.push_back(entrant.nanoseconds(calls_to_fill(time, guess)));
  } catch (const PeerAbsent&) {
    entrant.nanoseconds = nullptr;
  }
}

// One round. The exchange is the slower of that before it and that after it.
void measure(Contest& contest, std::chrono::nanoseconds time) {
  const double before = exchange_nanoseconds();
  const std::size_t count = contest.entrants.size();
  const std::size_t first = contest.exchanges.size();
  for (std::size_t i = 0; i < count; ++i) measure(contest.entrants[(i + first) % count], time);
  contest.exchanges.push_back(std::max(before, exchange_nanoseconds()));
}

// Of the rounds that rows are made of.
double median_exchange(const Contest& contest, bool judged) {
  std::vector<double> exchanges = contest.exchanges;
  if (judged) std::erase_if(exchanges, [](double exchange) { return !are_close(exchange); });
  return median(exchanges);
}

bool is_judged(const Contest& contest) {
  return std::count_if(contest.exchanges.begin(), contest.exchanges.end(), are_close) >= kJudgedRounds;
}

Row row_alone(const Contest& contest) {
  std::vector<Round> rounds;
  for (std::size_t r = 0; r < contest.exchanges.size(); ++r) {
    rounds.push_back({.exchange_ns = contest.exchanges[r], .ours = 1e9 / contest.entrants.front().taken[r]});
  }
  Row row = summarise_alone(contest.name, "calls/s", rounds);
  row.about = contest.about;
  row.about["exchange_ns"] = median_exchange(contest, row.judged);
  return row;
}

Row row_against(const Entrant& peer, const Contest& contest) {
  const bool micro = contest.unit == Unit::kMicroseconds;
  const double scale = micro ? 1e-3 : 1.0;
  std::vector<Round> rounds;
  for (std::size_t r = 0; r < contest.exchanges.size(); ++r) {
    rounds.push_back({.exchange_ns = contest.exchanges[r],
                      .ours = scale * contest.entrants.front().taken[r],
                      .peer = scale * peer.taken[r]});
  }
  Row row = summarise(fmt::format("{} vs {}", contest.name, peer.name), micro ? "us" : "ns", rounds);
  row.goal = peer.goal;
  row.about = contest.about;
  row.about["peer"] = peer.name;
  row.about["exchange_ns"] = median_exchange(contest, row.judged);
  return row;
}

}  // namespace

void hold(std::vector<Contest> contests, std::chrono::nanoseconds time, Report& report) {
  for (int round = 1; round <= kMostRounds; ++round) {
    for (Contest& contest : contests) {
      if (!is_judged(contest)) measure(contest, time);
    }
    const auto judged = std::count_if(contests.begin(), contests.end(), is_judged);
    fmt::print(stderr,
               "round {}: a 4-byte exchange takes {:.0f} ns; {} of {} contests have {} rounds with close cores\n",
               round, contests.back().exchanges.back(), judged, contests.size(), kJudgedRounds);
    if (judged == static_cast<std::ptrdiff_t>(contests.size())) break;
  }
  for (const Contest& contest : contests) {
    if (contest.unit == Unit::kCallsPerSecond) report.add(row_alone(contest));
    for (std::size_t i = 1; i < contest.entrants.size(); ++i) {
      const Entrant& peer = contest.entrants[i];
      if (peer.nanoseconds) report.add(row_against(peer, contest));
    }
  }
}

}  // namespace brigade::bench
