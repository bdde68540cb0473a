#include "data/csv_labels.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <numeric>
#include <optional>
#include <utility>

#include "data/csv_table.h"
#include "data/errors.h"

namespace brigade::data {
namespace {

// A whole number of 0 and more, of digits alone.
std::optional<std::int64_t> class_number(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || text.front() == '-') return std::nullopt;
  return value;
}

}  // namespace

CsvLabels::CsvLabels(std::string file, std::vector<std::string> class_names, std::int64_t classes)
    : file_(std::move(file)), fixed_(!class_names.empty()), classes_(classes) {
  for (std::string& name : class_names) {
    places_.emplace(name, distinct_.size());
    distinct_.push_back({.text = std::move(name), .line = 0});
  }
}

void CsvLabels::add(std::string_view label, std::uint64_t line) {
  if (label.size() > kCsvMaxLabel) {
    refuse(file_,
           fmt::format("line {}: the label {} has more than {} bytes. Is it the column of the labels? Name another "
                       "with .label.",
                       line, shown(label), kCsvMaxLabel));
  }
  const auto [found, added] = places_.try_emplace(std::string(label), distinct_.size());
  if (added) {
    if (fixed_) {
      refuse(file_, fmt::format("line {}: the label {} is not among the {} class names given. Give the names of all "
                                "classes, or the file that belongs to them.",
                                line, shown(label), distinct_.size()));
    }
    if (distinct_.size() == static_cast<std::size_t>(kCsvMaxClasses)) {
      refuse(file_, fmt::format("line {}: there are more than {} different labels by here. Is it the column of the "
                                "labels? Name another with .label.",
                                line, kCsvMaxClasses));
    }
    distinct_.push_back({.text = std::string(label), .line = line});
  }
  rows_.push_back(static_cast<std::int64_t>(found->second));
}

CsvLabels::Classes CsvLabels::finish() {
  if (fixed_) {
    Classes result{.labels = std::move(rows_), .classes = static_cast<std::int64_t>(distinct_.size()), .names = {}};
    for (Distinct& d : distinct_) result.names.push_back(std::move(d.text));
    return result;
  }
  std::vector<std::int64_t> numbers;
  for (const Distinct& d : distinct_) {
    const auto number = class_number(d.text);
    if (!number) return as_names();
    numbers.push_back(*number);
  }
  return as_numbers(numbers);
}

CsvLabels::Classes CsvLabels::as_numbers(const std::vector<std::int64_t>& numbers) {
  const auto largest = std::max_element(numbers.begin(), numbers.end());
  const std::uint64_t line = distinct_[static_cast<std::size_t>(largest - numbers.begin())].line;
  if (classes_ != 0 && *largest >= classes_) {
    refuse(file_,
           fmt::format("line {}: label {} is outside of the {} classes, 0 to {}. Give the number of classes that "
                       "the labels have.",
                       line, *largest, classes_, classes_ - 1));
  }
  if (classes_ == 0 && *largest >= kCsvMaxClasses) {
    refuse(file_, fmt::format("line {}: label {} would make for more than {} classes. Is it the column of the labels? "
                              "Name another with .label, or give the number of .classes.",
                              line, *largest, kCsvMaxClasses));
  }
  for (std::int64_t& row : rows_) row = numbers[static_cast<std::size_t>(row)];
  return {.labels = std::move(rows_), .classes = classes_ != 0 ? classes_ : *largest + 1, .names = {}};
}

CsvLabels::Classes CsvLabels::as_names() {
  const auto count = static_cast<std::int64_t>(distinct_.size());
  if (classes_ != 0 && classes_ != count) {
    refuse(file_,
           fmt::format("has {} different labels, such as {}, where .classes says {}. Leave .classes out, or give "
                       "the .class_names.",
                       count, shown(distinct_.front().text), classes_));
  }
  std::vector<std::size_t> sorted(distinct_.size());
  std::iota(sorted.begin(), sorted.end(), std::size_t{0});
  std::sort(sorted.begin(), sorted.end(),
            [this](std::size_t a, std::size_t b) { return distinct_[a].text < distinct_[b].text; });
  std::vector<std::int64_t> class_of(distinct_.size());
  Classes result{.labels = std::move(rows_), .classes = count, .names = {}};
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    class_of[sorted[i]] = static_cast<std::int64_t>(i);
    result.names.push_back(std::move(distinct_[sorted[i]].text));
  }
  for (std::int64_t& row : result.labels) row = class_of[static_cast<std::size_t>(row)];
  return result;
}

}  // namespace brigade::data
