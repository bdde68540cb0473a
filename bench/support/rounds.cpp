#include "support/rounds.h"

#include <fmt/format.h>

#include <algorithm>

#include "support/exchange.h"

namespace brigade::bench {

bool are_close(double exchange_ns) { return exchange_ns <= close_cores_nanoseconds(); }

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

void measure_rounds(const std::function<void(int round, double exchange_ns)>& measure) {
  for (int round = 0, close = 0; round < kMostRounds && close < kJudgedRounds; ++round) {
    const double exchange = exchange_nanoseconds();
    if (are_close(exchange)) ++close;
    fmt::print(stderr, "round {}: a 4-byte exchange takes {:.0f} ns; {} of {} rounds with close cores\n", round + 1,
               exchange, close, kJudgedRounds);
    measure(round, exchange);
  }
}

Row summarise(std::string name, std::string unit, const std::vector<Round>& rounds, Better better) {
  Row row = summarise_alone(std::move(name), std::move(unit), rounds);
  std::vector<double> ratios;
  std::vector<double> peer;
  for (const Round& round : rounds) {
    if (row.judged && !are_close(round.exchange_ns)) continue;
    peer.push_back(round.peer);
    ratios.push_back(better == Better::kLess ? round.peer / round.ours : round.ours / round.peer);
  }
  row.peer = median(peer);
  row.ratio = median(ratios);
  row.ratio_min = *std::min_element(ratios.begin(), ratios.end());
  row.ratio_max = *std::max_element(ratios.begin(), ratios.end());
  return row;
}

Row summarise_alone(std::string name, std::string unit, const std::vector<Round>& rounds) {
  const auto close =
      std::count_if(rounds.begin(), rounds.end(), [](const Round& r) { return are_close(r.exchange_ns); });
  const bool judged = close >= kJudgedRounds;
  std::vector<double> ours;
  for (const Round& round : rounds) {
    if (!judged || are_close(round.exchange_ns)) ours.push_back(round.ours);
  }
  return {.name = std::move(name), .ours = median(ours), .unit = std::move(unit), .judged = judged};
}

int calls_to_fill(std::chrono::nanoseconds target, double nanoseconds) {
  return static_cast<int>(std::clamp(static_cast<double>(target.count()) / std::max(nanoseconds, 1.0), 3.0, 1e6));
}

}  // namespace brigade::bench
