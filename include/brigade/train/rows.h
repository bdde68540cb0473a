// The rows of a leaf out of a step's batch.
#pragma once

#include <ATen/ATen.h>

#include <chrono>
#include <cstdint>

#include "brigade/data/loader.h"
#include "brigade/tree/tree.h"

namespace brigade::training::detail {

[[noreturn]] void throw_rows_differ(const std::string& path, std::int64_t rows, std::int64_t expected);
[[noreturn]] void throw_no_rows();
[[noreturn]] void throw_shards_differ(std::size_t shards, std::int64_t leaves);

// A tensor of its own: at the same alignment whatever the leaf's place in the batch is, as that shows in the bits of products.
at::Tensor copy_rows(const at::Tensor& tensor, data::RowRange rows);

// Adds what it takes from its construction to its end to the data time of the leaf that runs on this thread.
class DataTimed {
 public:
  DataTimed() noexcept : start_(std::chrono::steady_clock::now()) {}
  ~DataTimed();
  DataTimed(const DataTimed&) = delete;
  DataTimed& operator=(const DataTimed&) = delete;

 private:
  std::chrono::steady_clock::time_point start_;
};

// The data time of this thread since the last call.
std::chrono::nanoseconds take_data_time() noexcept;

// Rows of the batch: those of the leading dimension of its tensors, which all have as many. Throws ShapeError.
template <tree::Tree B>
std::int64_t rows_in(const B& batch) {
  std::int64_t rows = -1;
  tree::for_each(
      [&](const tree::Path& path, const auto& leaf) {
        if constexpr (tree::TensorLeaf<std::remove_cvref_t<decltype(leaf)>>) {
          if (!leaf.defined()) return;
          const std::int64_t own = leaf.dim() == 0 ? -2 : leaf.size(0);
          if (own == -2 || (rows >= 0 && own != rows)) throw_rows_differ(path.text(), own, rows);
          rows = own;
        }
      },
      batch);
  if (rows < 0) throw_no_rows();
  return rows;
}

template <tree::Tree B>
B rows_of(const B& batch, std::int64_t /*leaf*/, data::RowRange rows) {
  const DataTimed timed;
  return tree::map([&](const at::Tensor& tensor) { return tensor.defined() ? copy_rows(tensor, rows) : tensor; },
                   batch);
}

// A batch of a loader is cut already.
inline std::int64_t rows_in(const data::Batch& batch) { return batch.rows; }

inline const data::Shard& rows_of(const data::Batch& batch, std::int64_t leaf, data::RowRange /*rows*/) {
  return batch.shards[static_cast<std::size_t>(leaf)];
}

}  // namespace brigade::training::detail
