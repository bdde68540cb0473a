// How csv() is to read a table.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace brigade::data {

enum class CsvHeader {
  kFirstLine,  // the first line holds the names of the columns
  kNone,       // it is a row like the others
};

// By its number, from 0, or from -1 for the last on down; or by its name in the header.
using CsvColumn = std::variant<std::int64_t, std::string>;

struct CsvOptions {
  CsvHeader header = CsvHeader::kFirstLine;
  CsvColumn label = std::int64_t{-1};
  char separator = ',';
  // Labels are places in this list, such as the class_names of the training set when the test set is read; a label
  // outside of it is refused. Empty: as csv() says.
  std::vector<std::string> class_names = {};
  std::int64_t classes = 0;  // where labels are numbers they lie below it; 0 takes the largest + 1
  std::uint64_t max_bytes = std::uint64_t{4} << 30;  // of the file, unpacked; more is refused
};

}  // namespace brigade::data
