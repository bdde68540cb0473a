#include "support/contest.h"

#include <fmt/format.h>

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

Row row_alone(const Contest& contest, const std::vector<double>& exchanges) {
  std::vector<Round> rounds;
  for (std::size_t r = 0; r < exchanges.size(); ++r) {
    rounds.push_back({.exchange_ns = exchanges[r], .ours = 1e9 / contest.entrants.front().taken[r]});
  }
  Row row = summarise_alone(contest.name, "calls/s", rounds);
  row.about = contest.about;
  return row;
}

Row row_against(const Entrant& peer, const Contest& contest, const std::vector<double>& exchanges) {
  const bool micro = contest.unit == Unit::kMicroseconds;
  const double scale = micro ? 1e-3 : 1.0;
  std::vector<Round> rounds;
  for (std::size_t r = 0; r < exchanges.size(); ++r) {
    rounds.push_back({.exchange_ns = exchanges[r],
                      .ours = scale * contest.entrants.front().taken[r],
                      .peer = scale * peer.taken[r]});
  }
  Row row = summarise(fmt::format("{} vs {}", contest.name, peer.name), micro ? "us" : "ns", rounds);
  row.goal = peer.goal;
  row.about = contest.about;
  row.about["peer"] = peer.name;
  return row;
}

}  // namespace

void hold(std::vector<Contest> contests, std::chrono::nanoseconds time, Report& report) {
  std::vector<double> exchanges;
  measure_rounds([&](int round, double exchange) {
    exchanges.push_back(exchange);
    for (Contest& contest : contests) {
      const std::size_t count = contest.entrants.size();
      for (std::size_t i = 0; i < count; ++i)
        measure(contest.entrants[(i + static_cast<std::size_t>(round)) % count], time);
    }
  });
  for (const Contest& contest : contests) {
    if (contest.unit == Unit::kCallsPerSecond) report.add(row_alone(contest, exchanges));
    for (std::size_t i = 1; i < contest.entrants.size(); ++i) {
      const Entrant& peer = contest.entrants[i];
      if (peer.nanoseconds) report.add(row_against(peer, contest, exchanges));
    }
  }
}

}  // namespace brigade::bench
