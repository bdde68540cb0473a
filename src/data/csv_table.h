// A table of comma-separated values as numbers and labels, without torch. brigade/data/csv.h says what is read and what is
// refused.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "brigade/data/csv_options.h"
#include "data/byte_source.h"

namespace brigade::data {

inline constexpr std::int64_t kCsvMaxClasses = 65536;
inline constexpr std::size_t kCsvMaxLabel = 1024;  // bytes

struct CsvTable {
  std::size_t columns = 0;           // without the label's
  std::vector<float> values;         // rows x columns
  std::vector<std::int64_t> labels;  // rows
  std::int64_t classes = 0;
  std::vector<std::string> class_names;  // empty where labels are numbers
};

// Throws InvalidArgument for options that do not go together.
void check(const CsvOptions& options);

CsvTable parse_csv(ByteSource& source, const CsvOptions& options);

}  // namespace brigade::data
