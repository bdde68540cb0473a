#include "brigade/data/text.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <memory>

#include "brigade/base/error.h"
#include "data/byte_source.h"
#include "data/read_all.h"

namespace brigade::data {
namespace {

constexpr std::int64_t kByteValues = 256;

void check_sequence(std::int64_t sequence) {
  if (sequence >= 1) return;
  throw InvalidArgument(fmt::format("sequence is {}: give the number of bytes of a row, 1 or more.", sequence));
}

}  // namespace

torch::Tensor read_text(const std::vector<std::filesystem::path>& files, std::uint64_t max_bytes) {
  const auto bytes = std::make_shared<std::vector<std::byte>>();
  for (const std::filesystem::path& file : files) read_all(*open_bytes(file), max_bytes, *bytes);
  // The tensor takes the bytes over, without a copy.
  return at::from_blob(
      bytes->data(), {static_cast<std::int64_t>(bytes->size())}, [bytes](void*) {},
      at::TensorOptions().dtype(at::kByte));
}

Dataset sequences(const torch::Tensor& bytes, std::int64_t sequence) {
  check_sequence(sequence);
  if (!bytes.defined() || bytes.scalar_type() != at::kByte || bytes.dim() != 1) {
    throw ShapeError("sequences() cuts bytes: give a uint8 tensor of one dimension.");
  }
  const std::int64_t rows = (bytes.size(0) - 1) / sequence;
  if (bytes.size(0) - 1 < sequence) {
    throw DataError(
        fmt::format("There are {} bytes, where one row of {} and its answers take {}. Give more text, or a "
                    "shorter sequence.",
                    bytes.size(0), sequence, sequence + 1));
  }
  const torch::Tensor dense = bytes.contiguous();
  return {.x = dense.narrow(0, 0, rows * sequence).reshape({rows, sequence}),
          .y = dense.narrow(0, 1, rows * sequence).reshape({rows, sequence}),
          .classes = kByteValues};
}

Dataset text(const std::vector<std::filesystem::path>& files, TextOptions options) {
  check_sequence(options.sequence);
  return sequences(read_text(files, options.max_bytes), options.sequence);
}

}  // namespace brigade::data
