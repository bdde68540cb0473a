// Reads IDX files, the format of MNIST and Fashion-MNIST, plain or packed by gzip.
//
//   data::Dataset train = data::idx("train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz", {.classes = 10});
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <filesystem>

#include "brigade/data/dataset.h"

namespace brigade::data {

struct IdxOptions {
  std::int64_t classes = 0;                          // labels must lie below it; 0 takes the largest label plus one
  std::uint64_t max_bytes = std::uint64_t{4} << 30;  // of one file, unpacked; more is refused
};

// One file as a uint8 tensor of the dimensions it states, 1 to 8 of them. Throws DataError, with the file's name, what
// was found and what to do, when the file cannot be read, is damaged, cut short or followed by other bytes, holds
// elements other than unsigned bytes, or exceeds max_bytes. Memory follows the bytes that arrive, not what a header
// announces.
torch::Tensor read_idx(const std::filesystem::path& file, IdxOptions options = {});

// Images [N, H, W] or [N, C, H, W] as uint8, with their labels [N] as int64. Throws DataError as read_idx does, and
// when the two files do not belong together or a label is not below `classes`.
Dataset idx(const std::filesystem::path& images, const std::filesystem::path& labels, IdxOptions options = {});

}  // namespace brigade::data
