#include "brigade/train/rows.h"

#include <fmt/format.h>

#include <utility>

#include "brigade/base/error.h"

namespace brigade::training::detail {
namespace {

thread_local std::chrono::nanoseconds data_time{0};

}  // namespace

DataTimed::~DataTimed() { data_time += std::chrono::steady_clock::now() - start_; }

std::chrono::nanoseconds take_data_time() noexcept { return std::exchange(data_time, std::chrono::nanoseconds(0)); }

void throw_rows_differ(const std::string& path, std::int64_t rows, std::int64_t expected) {
  if (rows < 0) {
    throw ShapeError(fmt::format("the batch of a step has a number where rows are: give tensors whose leading "
                                 "dimension counts rows, and capture the "
                                 "rest in the loss function"),
                     {.argument = path});
  }
  throw ShapeError(
      fmt::format("the tensors of a batch have as many rows each, and one has {} where another has {}", rows, expected),
      {.argument = path});
}

void throw_no_rows() { throw ShapeError("the batch of a step holds no tensor, so it has no rows"); }

void throw_shards_differ(std::size_t shards, std::int64_t leaves) {
  throw ShapeError(fmt::format(
      "the batch is cut into {} shards and the step has {} leaves: take batches from the trainer's own loader()",
      shards, leaves));
}

at::Tensor copy_rows(const at::Tensor& tensor, data::RowRange rows) {
  return tensor.narrow(0, rows.begin, rows.size()).clone(at::MemoryFormat::Contiguous);
}

}  // namespace brigade::training::detail
