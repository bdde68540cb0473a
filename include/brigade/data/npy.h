// Reads NPY files, what numpy.save writes.
//
//   data::Dataset train = data::npy("images.npy", "labels.npy");
//
// https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <filesystem>

#include "brigade/data/dataset.h"

namespace brigade::data {

struct NpyOptions {
  std::int64_t classes = 0;                          // labels must lie below it; 0 takes the largest label plus one
  std::uint64_t max_bytes = std::uint64_t{4} << 30;  // of one file's elements; more is refused
};

// One array of bool, uint8, int8 to int64 or float16 to float64, of either byte order, stored in C's or Fortran's order,
// in versions 1 to 3 of the format, as a contiguous tensor aligned to 64 bytes. Throws DataError, with the file's name,
// what was found and what to do, when the file cannot be read, is damaged, is shorter or longer than its header says,
// holds elements of another dtype, or exceeds max_bytes. Python objects are never unpickled. Memory follows the file's
// size, not what its header announces.
torch::Tensor read_npy(const std::filesystem::path& file, NpyOptions options = {});

// x [rows, ...] with its labels y [rows] or [rows, ...], whole numbers of any dtype, which become int64. Throws DataError
// as read_npy does, and when the two do not belong together or a label is not in [0, classes).
Dataset npy(const std::filesystem::path& x, const std::filesystem::path& y, NpyOptions options = {});

}  // namespace brigade::data
