// What the leaves of one step have to report: each its own entry, written by the device that carries it, combined in the
// order of leaves. A step may be given in several parts, whose leaves follow one another.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "brigade/train/loss.h"
#include "brigade/train/step_report.h"
#include "per_leaf.h"

namespace brigade::training {

class LeafLedger {
 public:
  // As PerLeaf.
  void open(std::int64_t leaves) { entries_.open(leaves); }
  void keep_part() noexcept { entries_.keep_part(); }
  void drop_parts() noexcept { entries_.drop_parts(); }
  std::int64_t kept_leaves() const noexcept { return entries_.kept(); }

  // `leaf` is counted from the first one of the part. Throws InvalidArgument for a loss that is no number, or a count that is
  // negative or not finite. `rows` are those of the leaf.
  struct Entry {
    double sum = 0;    // of the loss
    double count = 0;  // of what it is divided by
    std::vector<Metric> metrics = {};
  };
  const Entry& write(std::int64_t leaf, std::int64_t rows, const Loss& loss);

  // What the leaves so far say: loss, weight, metrics, and how many they are.
  void report(StepReport& report) const;

  // T over the leaves.
  double weight() const;
  double loss() const;  // the sum divided by the weight
  std::map<std::string, double> metrics() const;

  // Of each leaf, when all have the same; nothing else.
  std::optional<double> common_count() const noexcept;

  // The first leaf whose loss is not finite; -1 when all are.
  std::int64_t first_non_finite() const noexcept;

 private:
  PerLeaf<Entry> entries_;
};

}  // namespace brigade::training
