// A batch of any number of rows as equal shares for N devices.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <source_location>
#include <string>

#include "brigade/runtime/device.h"
#include "brigade/tree/tree.h"

namespace brigade {

// See pad_and_mask. With R = ceil(B / N) rows on each of N devices for a batch of B:
template <tree::Tree T>
struct PaddedBatch {
  T rows;           // tensors (B, ...) as (N, R, ...)
  at::Tensor mask;  // (N, R), bool: which rows are of the batch
};

namespace detail {

// The number of rows that all tensors of a batch have. Each call is told of one tensor.
class RowCount {
 public:
  explicit RowCount(std::source_location site) : site_(site) {}

  // Throws ShapeError when `tensor` has no dimension, or others had another number of rows; TreeError when undefined.
  void add(const at::Tensor& tensor, const tree::Path& path);

  // Throws InvalidArgument when there was no tensor.
  std::int64_t value() const;

 private:
  std::source_location site_;
  std::int64_t rows_ = -1;
  std::string first_path_;
};

// (B, ...) as (devices, per_device, ...), with copies of the last row in the end.
at::Tensor split_rows(const at::Tensor& tensor, std::int64_t devices, std::int64_t per_device);

at::Tensor mask_of_rows(std::int64_t rows, std::int64_t devices, std::int64_t per_device);

// ceil(rows / devices). Throws InvalidArgument unless devices is at least 1.
std::int64_t rows_per_device(std::int64_t rows, std::int64_t devices, std::source_location site);

}  // namespace detail

// The rows of a batch in order, R to each device, ready for in_axes 0:
//
//   const auto [rows, mask] = pad_and_mask(Batch{x, y}, 4);          // x: (10, 784) -> rows.x: (4, 3, 784)
//   pmap([](Batch b, torch::Tensor real) {
//     const auto losses = ...;                                       // (3), of which some are padding
//     return lax::psum((losses * real).sum(), "i") / lax::psum(real.sum(), "i");   // the mean over the true 10 rows
//   }, {.axis_name = "i"})(rows, mask);
//
// What is missing in the end repeats the last row, so padding makes no NaN of its own; multiply by the mask before a sum.
// Numbers in the tree stay as they are. Copies nothing when N divides B. Differentiable.
//
// Throws ShapeError when tensors differ in their number of rows or have none, InvalidArgument for less than one device or
// a batch without tensors, TreeError for an undefined tensor.
template <tree::Tree T>
PaddedBatch<T> pad_and_mask(const T& batch, std::int64_t devices = local_device_count(),
                            std::source_location site = std::source_location::current()) {
  detail::RowCount count(site);
  tree::for_each(
      [&](const tree::Path& path, const auto& leaf) {
        if constexpr (tree::TensorLeaf<std::remove_cvref_t<decltype(leaf)>>) count.add(leaf, path);
      },
      batch);
  const std::int64_t rows = count.value();
  const std::int64_t per_device = detail::rows_per_device(rows, devices, site);
  return {tree::map([&](const at::Tensor& t) { return detail::split_rows(t, devices, per_device); }, batch),
          detail::mask_of_rows(rows, devices, per_device)};
}

}  // namespace brigade
