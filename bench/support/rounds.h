// Two sides measured by turns, so that whatever disturbs the machine disturbs both.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "support/report.h"

namespace brigade::bench {

// The middle value; the mean of the two middle ones of an even number. `values` is not empty.
double median(std::vector<double> values);

// What two sides took in one round.
struct Round {
  double exchange_ns = 0;  // exchange_nanoseconds() of that round
  double ours = 0;
  double peer = 0;
};

// Rounds of close cores, or all when there are none.
std::vector<Round> judged(const std::vector<Round>& rounds);

// Medians of the judged rounds. How many times better ours is: peer / ours when less is better, as with times.
enum class Better { kLess, kMore };
Row summarise(std::string name, std::string unit, const std::vector<Round>& rounds, Better better = Better::kLess);

// Nanoseconds per call of `work`, over `calls` of them.
template <class Work>
double nanoseconds_per_call(int calls, Work work) {
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < calls; ++i) work();
  return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count() / calls;
}

// How many calls of `nanoseconds` each fill about `target`; at least 3.
int calls_to_fill(std::chrono::nanoseconds target, double nanoseconds);

}  // namespace brigade::bench
