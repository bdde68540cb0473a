// Reads tables of comma-separated values, plain or packed by gzip: one column of labels, all others numbers.
//
//   data::Dataset iris = data::csv("iris.csv", {.label = "species"});
//
// RFC 4180: fields may be in double quotes, and then hold separators, line breaks and, doubled, quotes; lines end in LF or
// CRLF.
#pragma once

#include <filesystem>

#include "brigade/data/csv_options.h"
#include "brigade/data/dataset.h"

namespace brigade::data {

// x is float32 [rows, columns - 1], each number rounded to the nearest; y is int64 [rows]. Labels that are all whole
// numbers of 0 and more are classes as they stand. If any is not, all are names: the distinct ones, sorted by their bytes,
// are numbered from 0 and kept in class_names. Empty lines are skipped, spaces around numbers too.
//
// Throws DataError, with the file's name, the line and the column, when a number is missing, is none or does not fit
// into float32; when a line has another number of fields than the first, or its quotes do not fit; when there is no row,
// no such column as the label's, or none besides it; when a label is not among the classes, has more than 1,024 bytes, or
// there are more than 65,536 classes; and as the other readers when the file cannot be read or exceeds max_bytes. Takes at
// most twice the memory of x and y, and what one row, of at most 16 MiB, and the distinct labels need. Throws
// InvalidArgument for options that do not go together.
Dataset csv(const std::filesystem::path& file, const CsvOptions& options = {});

}  // namespace brigade::data
