// Reads files as the bytes that they are, for a language model that knows 256 of them.
//
//   data::Dataset train = data::text({"book.txt"}, {.sequence = 64});
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <filesystem>
#include <vector>

#include "brigade/data/dataset.h"

namespace brigade::data {

struct TextOptions {
  std::int64_t sequence = 64;                        // bytes of a row
  std::uint64_t max_bytes = std::uint64_t{4} << 30;  // of all files together, unpacked; more is refused
};

// The bytes of the files, one behind the other with nothing in between, as a uint8 tensor [bytes]. Files may be plain or
// packed by gzip. Throws DataError when one cannot be read, is damaged, or they exceed max_bytes. Memory follows the
// bytes that arrive.
torch::Tensor read_text(const std::vector<std::filesystem::path>& files,
                        std::uint64_t max_bytes = TextOptions().max_bytes);

// Cuts `bytes`, uint8 [n], into rows of T: row i has x = bytes [iT, iT + T) and y, what comes after each of them,
// [iT + 1, iT + T + 1). There are (n - 1) / T rows, rounded down. Each byte but the first is an answer once; the tail that
// does not fill a row, at most T - 1 bytes, is left out, as rows of another length could not be in one batch. x and y are
// views [rows, T] of `bytes`, and classes is 256. Throws InvalidArgument when T is below 1, ShapeError for other tensors,
// DataError when there are fewer than T + 1 bytes.
Dataset sequences(const torch::Tensor& bytes, std::int64_t sequence);

// sequences() of read_text(). A part held back for evaluation is cut from the bytes:
//
//   torch::Tensor bytes = data::read_text({"book.txt"});
//   auto test = data::sequences(bytes.narrow(0, 0, 100'000), 64);
Dataset text(const std::vector<std::filesystem::path>& files, TextOptions options = {});

}  // namespace brigade::data
