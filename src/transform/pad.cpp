#include "brigade/transform/pad.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include "brigade/base/error.h"

namespace brigade::detail {

void RowCount::add(const at::Tensor& tensor, const tree::Path& path) {
  const ErrorContext context{.argument = path.text(), .site = site_};
  if (!tensor.defined()) throw TreeError("pad_and_mask of an undefined tensor: give it a value first", context);
  if (tensor.dim() == 0) {
    throw ShapeError(
        "pad_and_mask of a tensor of shape [], which has no rows: leave it out, or give it a leading "
        "dimension",
        context);
  }
  if (rows_ < 0) {
    rows_ = tensor.size(0);
    first_path_ = path.text();
  } else if (tensor.size(0) != rows_) {
    throw ShapeError(fmt::format("pad_and_mask of {} rows here and {} in {}: tensors of one batch have as many rows",
                                 tensor.size(0), rows_, first_path_),
                     context);
  }
}

std::int64_t RowCount::value() const {
  if (rows_ < 0) throw InvalidArgument("pad_and_mask of a batch without tensors, which has no rows", {.site = site_});
  return rows_;
}

std::int64_t rows_per_device(std::int64_t rows, std::int64_t devices, std::source_location site) {
  if (devices < 1) {
    throw InvalidArgument(fmt::format("pad_and_mask for {} devices: name at least one", devices), {.site = site});
  }
  return (rows + devices - 1) / devices;
}

at::Tensor split_rows(const at::Tensor& tensor, std::int64_t devices, std::int64_t per_device) {
  const std::int64_t rows = tensor.size(0), missing = devices * per_device - rows;
  at::Tensor full = tensor;
  if (missing > 0) {
    std::vector<std::int64_t> sizes = tensor.sizes().vec();
    sizes[0] = missing;
    full = at::cat({tensor, tensor.narrow(0, rows - 1, 1).expand(sizes)});
  }
  std::vector<std::int64_t> split = tensor.sizes().vec();
  split[0] = per_device;
  split.insert(split.begin(), devices);
  return full.reshape(split);
}

at::Tensor mask_of_rows(std::int64_t rows, std::int64_t devices, std::int64_t per_device) {
  return (at::arange(devices * per_device, at::kLong) < rows).reshape({devices, per_device});
}

}  // namespace brigade::detail
