// Two sides measured by turns, so that whatever disturbs the machine disturbs both.
#pragma once

#include <algorithm>
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

// Goals are judged by at least so many rounds of close cores; to get them, at most so many rounds are measured.
inline constexpr int kJudgedRounds = 7;
inline constexpr int kMostRounds = 25;

bool are_close(double exchange_ns);

// Calls `measure` once a round with the round's number, from 0, and its exchange_nanoseconds(), until kJudgedRounds
// rounds had close cores or kMostRounds are through.
void measure_rounds(const std::function<void(int round, double exchange_ns)>& measure);

// Medians of the rounds of close cores, and the row is judged; of all rounds, and it is not, when fewer than
// kJudgedRounds had close cores. How many times better ours is: peer / ours when less is better, as with times.
enum class Better { kLess, kMore };
Row summarise(std::string name, std::string unit, const std::vector<Round>& rounds, Better better = Better::kLess);

// The same of ours alone.
Row summarise_alone(std::string name, std::string unit, const std::vector<Round>& rounds);

// Nanoseconds per call of `work`: the median of up to 10 equal series of together about `calls` calls, so that a series
// in which the system gave the core to someone else does not count.
template <class Work>
double nanoseconds_per_call(int calls, Work work) {
  const int series = std::clamp(calls / 3, 1, 10);
  const int length = calls / series;
  std::vector<double> taken;
  for (int s = 0; s < series; ++s) {
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < length; ++i) work();
    taken.push_back(std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count() /
                    length);
  }
  return median(taken);
}

// How many calls of `nanoseconds` each fill about `target`; at least 3.
int calls_to_fill(std::chrono::nanoseconds target, double nanoseconds);

}  // namespace brigade::bench
