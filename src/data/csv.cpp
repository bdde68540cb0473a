#include "brigade/data/csv.h"

#include <ATen/ATen.h>

#include <utility>

#include "data/byte_source.h"
#include "data/csv_table.h"

namespace brigade::data {

Dataset csv(const std::filesystem::path& file, const CsvOptions& options) {
  check(options);
  const auto source = open_bytes(file);
  CsvTable table = parse_csv(*source, options);
  const auto rows = static_cast<std::int64_t>(table.labels.size());
  const auto columns = static_cast<std::int64_t>(table.columns);
  // Tensors of their own: those of torch are aligned, and vectors are not.
  return {.x = at::from_blob(table.values.data(), {rows, columns}, at::kFloat).clone(),
          .y = at::from_blob(table.labels.data(), {rows}, at::kLong).clone(),
          .classes = table.classes,
          .class_names = std::move(table.class_names)};
}

}  // namespace brigade::data
