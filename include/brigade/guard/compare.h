// What differs between two checkpoints, or two files of tensors.
//
//   const guard::Comparison found = guard::compare(guard::load("a/step-00000042"), guard::load("b/step-00000042"));
//   for (const auto& one : found.differences) std::puts(guard::describe(one).c_str());
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "brigade/guard/checkpoint.h"

namespace brigade::guard {

struct Difference {
  enum class Kind : std::uint8_t {
    kOnlyInFirst,
    kOnlyInSecond,
    kDtype,
    kShape,
    kValues,
  };

  std::string part = {};  // "model", "optimizer", or "state" for a value of the state
  std::string name = {};  // of the tensor; of the state, a path such as "/loader/epoch"
  Kind kind = Kind::kValues;
  std::string first = {}, second = {};  // dtypes and shapes, or values: of the first element that differs

  // Of tensors whose values differ
  std::vector<std::int64_t> index = {};  // of the first element that differs
  std::uint64_t count = 0;               // of elements that do, bit for bit
  std::uint64_t elements = 0;            // of all
  std::optional<std::uint64_t> largest_ulps =
      {};  // of the two farthest apart; of integers their difference. None with a NaN
};

struct Comparison {
  std::vector<Difference> differences = {};  // by part and name
  std::vector<Difference> notes = {};        // in who wrote them, and on what, which is no difference of the runs
  std::int64_t tensors = 0;                  // that were compared

  bool equal() const noexcept { return differences.empty(); }
};

// Bit for bit: -0 is not 0, and a NaN is itself.
Comparison compare(const Checkpoint& first, const Checkpoint& second);
Comparison compare(const data::TensorMap& first, const data::TensorMap& second, const std::string& part = "model");

// In one line: `model "w1": 3 of 50176 elements differ, first [0, 7]: 0.25 and 0.2500001, up to 2 units in the last place`. What a
// terminal would obey is shown as \uNNNN.
std::string describe(const Difference& difference);

}  // namespace brigade::guard
