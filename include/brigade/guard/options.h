// How checkpoints are kept. Every member has a default; errors name the member.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace brigade::guard {

enum class Goal : std::uint8_t { kSmallest, kLargest };

// The best checkpoint by a number of its state: state["metrics"][metric]. Those without such a number are no candidates; of
// equal ones the first is kept.
struct Best {
  std::string metric = {};
  Goal goal = Goal::kSmallest;
};

// What happens when a checkpoint cannot be written: the disk is full, or failed.
enum class OnFailure : std::uint8_t {
  kStop,      // the next save(), or finish(), throws what went wrong
  kContinue,  // it is logged as an error and counted, and the run goes on
};

struct CheckpointerOptions {
  std::filesystem::path folder = {};   // made, with mode 0700, when it is missing
  std::int64_t keep_last = 2;          // older ones are removed, once a newer one is on the disk and was read back
  std::optional<Best> keep_best = {};  // kept besides
  OnFailure on_failure = OnFailure::kStop;
};

}  // namespace brigade::guard
