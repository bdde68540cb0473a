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

namespace brigade::training {

class LeafLedger {
 public:
  // Of a step with so many leaves.
  void open(std::int64_t leaves);

  // The entries so far are a part of a step, which go_on() with so many leaves more adds to: those of a part that was not kept
  // give way.
  void keep_part() noexcept { kept_ = entries_.size(); }
  void go_on(std::int64_t leaves);

  // Those of kept parts.
  std::int64_t kept_leaves() const noexcept { return static_cast<std::int64_t>(kept_); }

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
  std::vector<Entry> entries_;
  std::size_t kept_ = 0;
};

}  // namespace brigade::training
