#include "data/csv_table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "brigade/base/error.h"
#include "data/csv_labels.h"
#include "data/csv_reader.h"
#include "data/errors.h"

namespace brigade::data {
namespace {

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kSpaces = " \t";
  text.remove_prefix(std::min(text.find_first_not_of(kSpaces), text.size()));
  return text.substr(0, text.find_last_not_of(kSpaces) + 1);
}

// `text`, which is all of a decimal number, rounded to the nearest float; infinite when it does not fit. Nothing when it
// is no number.
std::optional<float> to_float(std::string_view text) {
  if (text.starts_with('+')) {
    text.remove_prefix(1);
    if (text.starts_with('-')) return std::nullopt;
  }
  // The words for infinities and what is no number begin with a letter.
  const std::string_view digits = text.substr(text.starts_with('-') ? 1 : 0);
  if (digits.empty() || !(digits.front() == '.' || (digits.front() >= '0' && digits.front() <= '9')))
    return std::nullopt;
  float value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (end != text.data() + text.size() || error == std::errc::invalid_argument) return std::nullopt;
  if (error == std::errc()) return value;
  // Too large or too small for float. What is nearly zero becomes zero; a double tells it from the other.
  double wide = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), wide);
  const bool small = result.ec == std::errc() && std::abs(wide) < 1;
  return small ? static_cast<float>(wide) : std::numeric_limits<float>::infinity();
}

class TableParser {
 public:
  TableParser(ByteSource& source, const CsvOptions& options)
      : source_(source),
        options_(options),
        reader_(source, options.separator, options.max_bytes),
        labels_(source.name(), options.class_names, options.classes) {}

  CsvTable parse() {
    if (!reader_.next(record_)) refuse(source_.name(), "holds no line. Give a file with one row or more.");
    first_line_ = record_.line;
    fields_ = record_.size();
    if (options_.header == CsvHeader::kFirstLine) {
      for (std::size_t i = 0; i < fields_; ++i) names_.emplace_back(record_[i]);
    }
    label_ = find_label();
    if (fields_ < 2) {
      refuse(source_.name(),
             fmt::format("line {} has one field, the label's, and none beside it. Is the separator '{}' the "
                         "right one?",
                         first_line_, options_.separator));
    }
    table_.columns = fields_ - 1;
    if (options_.header == CsvHeader::kNone) add_row();
    while (reader_.next(record_)) add_row();
    if (labels_.rows() == 0) refuse(source_.name(), "holds no row behind its header. Give a file with one or more.");
    CsvLabels::Classes classes = labels_.finish();
    table_.labels = std::move(classes.labels);
    table_.classes = classes.classes;
    table_.class_names = std::move(classes.names);
    return std::move(table_);
  }

 private:
  std::size_t find_label() const {
    if (const auto* name = std::get_if<std::string>(&options_.label)) {
      const auto found = std::find(names_.begin(), names_.end(), *name);
      if (found == names_.end()) {
        const std::string nearest = nearest_name(*name, names_);
        refuse(source_.name(),
               fmt::format("has no column {} among the {} of line {}{}. Name the label's column.", shown(*name),
                           fields_, first_line_,
                           nearest.empty() ? std::string() : fmt::format("; did you mean {}?", shown(nearest))));
      }
      if (std::find(found + 1, names_.end(), *name) != names_.end()) {
        refuse(source_.name(), fmt::format("line {} has two columns {}. Give the number of the label's, from 0.",
                                           first_line_, shown(*name)));
      }
      return static_cast<std::size_t>(found - names_.begin());
    }
    const std::int64_t number = std::get<std::int64_t>(options_.label);
    const auto fields = static_cast<std::int64_t>(fields_);
    if (number < -fields || number >= fields) {
      refuse(source_.name(),
             fmt::format("has {} columns, so there is no number {}: they go from 0 to {}, or from -1, the "
                         "last, to {}.",
                         fields, number, fields - 1, -fields));
    }
    return static_cast<std::size_t>(number < 0 ? number + fields : number);
  }

  void add_row() {
    if (record_.size() != fields_) {
      refuse(source_.name(),
             fmt::format("line {} has {} fields, where line {} has {}. Give every row one field a column.",
                         record_.line, record_.size(), first_line_, fields_));
    }
    for (std::size_t i = 0; i < fields_; ++i) {
      if (i != label_) table_.values.push_back(number(i));
    }
    if (record_[label_].empty()) refuse_field(label_, "the label is missing. Fill it in, or leave out the row.");
    labels_.add(record_[label_], record_.line);
  }

  float number(std::size_t field) const {
    const std::string_view text = trimmed(record_[field]);
    if (text.empty()) refuse_field(field, "the number is missing. Fill it in, or leave out the row or the column.");
    const auto value = to_float(text);
    if (!value) {
      const bool perhaps_header = options_.header == CsvHeader::kNone && record_.line == first_line_;
      refuse_field(field, fmt::format("{} is no number.{}", shown(text),
                                      perhaps_header ? " If the first line holds names, say so with .header."
                                                     : " Encode it as one, or leave out the column."));
    }
    if (!std::isfinite(*value)) refuse_field(field, fmt::format("{} does not fit into float32.", shown(text)));
    return *value;
  }

  [[noreturn]] void refuse_field(std::size_t field, std::string_view problem) const {
    const std::string name = names_.empty() ? std::string() : fmt::format(" ({})", shown(names_[field]));
    refuse(source_.name(), fmt::format("line {}, column {}{}: {}", record_.line, field, name, problem));
  }

  ByteSource& source_;
  const CsvOptions& options_;
  CsvReader reader_;
  CsvLabels labels_;
  CsvTable table_;
  CsvRecord record_;
  std::vector<std::string> names_;  // of the columns; empty without a header
  std::uint64_t first_line_ = 0;    // of what is neither empty nor before the first row
  std::size_t fields_ = 0;          // of every row
  std::size_t label_ = 0;
};

}  // namespace

void check(const CsvOptions& options) {
  if (options.header == CsvHeader::kNone && std::holds_alternative<std::string>(options.label)) {
    throw InvalidArgument(fmt::format("csv: the label's column is named {}, but there is no header. Give its number.",
                                      shown(std::get<std::string>(options.label))));
  }
  constexpr std::string_view kTaken("\"\r\n\0", 4);
  if (kTaken.find(options.separator) != std::string_view::npos) {
    throw InvalidArgument("csv: the separator must be none of quote, carriage return, line feed and zero.");
  }
  if (options.classes < 0) {
    throw InvalidArgument(
        fmt::format("csv: {} classes cannot be: give their number, or 0 to take it from the labels.", options.classes));
  }
  if (options.classes != 0 && !options.class_names.empty()) {
    throw InvalidArgument("csv: give either the number of classes or their names.");
  }
  std::set<std::string_view> names;
  for (const std::string& name : options.class_names) {
    if (!names.insert(name).second) {
      throw InvalidArgument(fmt::format("csv: the class name {} is given twice.", shown(name)));
    }
  }
}

CsvTable parse_csv(ByteSource& source, const CsvOptions& options) {
  check(options);
  return TableParser(source, options).parse();
}

}  // namespace brigade::data
