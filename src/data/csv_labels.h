// From the texts of a column of labels to classes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace brigade::data {

// Holds each distinct label once, and a number a row.
class CsvLabels {
 public:
  // `file` is for messages. `class_names` may be empty: then labels name the classes. They differ from one another.
  CsvLabels(std::string file, std::vector<std::string> class_names, std::int64_t classes);

  // The label of the next row, which begins at `line`. Throws DataError when it is too long or not among the class
  // names, or there are too many distinct ones.
  void add(std::string_view label, std::uint64_t line);

  std::size_t rows() const noexcept { return rows_.size(); }

  struct Classes {
    std::vector<std::int64_t> labels;  // of the rows
    std::int64_t classes = 0;
    std::vector<std::string> names;  // empty where labels are numbers
  };
  // What all rows together amount to; once. Throws DataError when a number is none of the classes.
  Classes finish();

 private:
  struct Distinct {
    std::string text;
    std::uint64_t line;  // where it comes first
  };

  Classes as_numbers(const std::vector<std::int64_t>& numbers);
  Classes as_names();

  std::string file_;
  bool fixed_;  // the names were given
  std::int64_t classes_;
  std::vector<Distinct> distinct_;
  std::unordered_map<std::string, std::size_t> places_;  // in distinct_
  std::vector<std::int64_t> rows_;                       // places in distinct_
};

}  // namespace brigade::data
