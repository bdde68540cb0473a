// Any bytes at all either end in a DataError that names them, or are a table: every row whole, every number finite, every
// label a class. Written by hand and quoted, it is read as the same.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "brigade/base/error.h"
#include "data/byte_source.h"
#include "data/csv_table.h"

namespace {

using namespace brigade;
using namespace brigade::data;

void require(bool condition) {
  if (!condition) std::abort();
}

// Nothing when the bytes were refused.
std::optional<CsvTable> read(std::span<const std::byte> file, const CsvOptions& options) {
  try {
    MemorySource source("input", file);
    return parse_csv(source, options);
  } catch (const DataError& error) {
    require(std::string_view(error.what()).starts_with("input: "));
    return std::nullopt;
  }
}

void check_table(const CsvTable& table) {
  require(!table.labels.empty() && table.columns > 0);
  require(table.values.size() == table.labels.size() * table.columns);
  for (const float value : table.values) require(std::isfinite(value));
  for (const std::int64_t label : table.labels) require(label >= 0 && label < table.classes);
  require(table.class_names.empty() || static_cast<std::int64_t>(table.class_names.size()) == table.classes);
  for (std::size_t i = 1; i < table.class_names.size(); ++i) require(table.class_names[i - 1] < table.class_names[i]);
}

std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (const char c : text) result += c == '"' ? "\"\"" : std::string(1, c);
  return result + "\"";
}

// Without a header, the label first.
std::string write(const CsvTable& table) {
  std::string text;
  for (std::size_t row = 0; row < table.labels.size(); ++row) {
    const auto label = static_cast<std::size_t>(table.labels[row]);
    text += quoted(table.class_names.empty() ? std::to_string(label) : table.class_names[label]);
    for (std::size_t column = 0; column < table.columns; ++column) {
      char number[32];
      std::snprintf(number, sizeof number, ",%.9g", static_cast<double>(table.values[row * table.columns + column]));
      text += number;
    }
    text += "\r\n";
  }
  return text;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  for (const CsvHeader header : {CsvHeader::kFirstLine, CsvHeader::kNone}) {
    const auto table = read(bytes, {.header = header, .max_bytes = 1 << 20});
    if (!table) continue;
    check_table(*table);
    const std::string text = write(*table);
    const auto again =
        read(std::as_bytes(std::span(text)), {.header = CsvHeader::kNone, .label = 0, .max_bytes = 1 << 24});
    require(again.has_value());
    require(again->values == table->values && again->labels == table->labels);
    require(again->class_names == table->class_names && again->classes == table->classes);
  }
  return 0;
}
