#include "leaf_ledger.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>

#include "brigade/base/error.h"
#include "brigade/optim/block_sums.h"

namespace brigade::training {

const LeafLedger::Entry& LeafLedger::write(std::int64_t leaf, std::int64_t rows, const Loss& loss) {
  if (!loss.value.defined() || loss.value.numel() != 1 || !loss.value.is_floating_point()) {
    throw InvalidArgument(fmt::format(
        "the loss of a leaf must be one floating-point number, and is {}",
        loss.value.defined()
            ? fmt::format("{}[{}]", c10::toString(loss.value.scalar_type()), fmt::join(loss.value.sizes(), ", "))
            : "undefined"));
  }
  const double count = loss.count.value_or(static_cast<double>(rows));
  if (!std::isfinite(count) || count < 0) {
    throw InvalidArgument(fmt::format("the loss of a leaf was taken over {} things; give 0 or more", count));
  }
  Entry& entry = entries_[leaf];
  entry.count = count;
  entry.metrics = loss.metrics;
  // A mean over nothing is NaN, and says nothing.
  if (count > 0) entry.sum = loss.value.item<double>() * (loss.of == Loss::Of::kMean ? count : 1.0);
  return entry;
}

void LeafLedger::report(StepReport& report) const {
  report.loss = loss();
  report.weight = weight();
  report.metrics = metrics();
  report.leaves = static_cast<std::int64_t>(entries_.all().size());
}

double LeafLedger::weight() const {
  std::vector<double> counts;
  for (const Entry& entry : entries_.all()) counts.push_back(entry.count);
  return optim::tree_sum(counts);
}

double LeafLedger::loss() const {
  std::vector<double> sums;
  for (const Entry& entry : entries_.all()) sums.push_back(entry.sum);
  return optim::tree_sum(sums) / weight();
}

std::map<std::string, double> LeafLedger::metrics() const {
  std::map<std::string, std::pair<std::vector<double>, std::vector<double>>> columns;
  for (const Entry& entry : entries_.all()) {
    for (const Metric& metric : entry.metrics) {
      columns[metric.name].first.push_back(metric.sum);
      columns[metric.name].second.push_back(metric.count);
    }
  }
  std::map<std::string, double> metrics;
  for (const auto& [name, column] : columns) {
    metrics[name] = optim::tree_sum(column.first) / optim::tree_sum(column.second);
  }
  return metrics;
}

std::optional<double> LeafLedger::common_count() const noexcept {
  for (const Entry& entry : entries_.all()) {
    if (entry.count != entries_.all().front().count) return std::nullopt;
  }
  return entries_.all().front().count;
}

std::int64_t LeafLedger::first_non_finite() const noexcept {
  for (std::size_t leaf = 0; leaf < entries_.all().size(); ++leaf) {
    if (!std::isfinite(entries_.all()[leaf].sum)) return static_cast<std::int64_t>(leaf);
  }
  return -1;
}

}  // namespace brigade::training
