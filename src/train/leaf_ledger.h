// What the leaves of one step have to report: each its own entry, written by the device that carries it, combined in the
// order of leaves.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "brigade/train/loss.h"

namespace brigade::training {

class LeafLedger {
 public:
  // Of a step with so many leaves.
  void open(std::int64_t leaves);

  // Throws InvalidArgument for a loss that is no number, or a count that is negative or not finite. `rows` are those of the
  // leaf; `site` names the step.
  struct Entry {
    double sum = 0;    // of the loss
    double count = 0;  // of what it is divided by
    std::vector<Metric> metrics = {};
  };
  const Entry& write(std::int64_t leaf, std::int64_t rows, const Loss& loss);

  // T over the leaves.
  double weight() const;
  double loss() const;  // the sum divided by the weight
  std::map<std::string, double> metrics() const;

  // Of each leaf, when all have the same; nothing else.
  std::optional<double> common_count() const noexcept;

  // The first leaf whose loss is not finite; -1 when all are.
  std::int64_t first_non_finite() const noexcept;

 private:
  std::vector<Entry> entries_;
};

}  // namespace brigade::training
