#include "support/rounds.h"

#include <algorithm>

#include "support/exchange.h"

namespace brigade::bench {

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

std::vector<Round> judged(const std::vector<Round>& rounds) {
  std::vector<Round> close;
  std::copy_if(rounds.begin(), rounds.end(), std::back_inserter(close),
               [](const Round& round) { return round.exchange_ns <= kCloseCoresNanoseconds; });
  return close.empty() ? rounds : close;
}

Row summarise(std::string name, std::string unit, const std::vector<Round>& rounds, Better better) {
  std::vector<double> ours;
  std::vector<double> peer;
  std::vector<double> ratios;
  for (const Round& round : judged(rounds)) {
    ours.push_back(round.ours);
    peer.push_back(round.peer);
    ratios.push_back(better == Better::kLess ? round.peer / round.ours : round.ours / round.peer);
  }
  return {.name = std::move(name),
          .ours = median(ours),
          .peer = median(peer),
          .unit = std::move(unit),
          .ratio = median(ratios),
          .ratio_min = *std::min_element(ratios.begin(), ratios.end()),
          .ratio_max = *std::max_element(ratios.begin(), ratios.end()),
          .goal = {}};
}

int calls_to_fill(std::chrono::nanoseconds target, double nanoseconds) {
  return static_cast<int>(std::clamp(static_cast<double>(target.count()) / std::max(nanoseconds, 1.0), 3.0, 1e6));
}

}  // namespace brigade::bench
