#include "brigade/data/idx.h"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>

#include "brigade/base/error.h"
#include "data/byte_source.h"
#include "data/errors.h"
#include "data/idx_parser.h"

namespace brigade::data {
namespace {

// The tensor takes the bytes over, without a copy.
torch::Tensor to_tensor(IdxArray array) {
  const auto owner = std::make_shared<IdxArray>(std::move(array));
  return at::from_blob(
      owner->bytes.data(), owner->sizes, [owner](void*) {}, at::TensorOptions().dtype(at::kByte));
}

// Returns the number of classes.
std::int64_t check_labels(const std::filesystem::path& file, const torch::Tensor& labels, std::int64_t classes) {
  const auto* begin = labels.data_ptr<std::uint8_t>();
  const auto* end = begin + labels.numel();
  const auto* largest = std::max_element(begin, end);
  if (classes != 0 && *largest >= classes) {
    refuse(file.string(),
           fmt::format("label {} at row {} is outside of the {} classes, 0 to {}. Give the number of classes that the "
                       "labels have, or the file that belongs to these images.",
                       *largest, largest - begin, classes, classes - 1));
  }
  return classes != 0 ? classes : *largest + 1;
}

}  // namespace

torch::Tensor read_idx(const std::filesystem::path& file, IdxOptions options) {
  const auto source = open_bytes(file);
  return to_tensor(parse_idx(*source, options.max_bytes));
}

Dataset idx(const std::filesystem::path& images, const std::filesystem::path& labels, IdxOptions options) {
  if (options.classes < 0) {
    throw InvalidArgument(
        fmt::format("{} classes cannot be: give their number, or 0 to take it from the labels.", options.classes));
  }
  Dataset dataset;
  dataset.x = read_idx(images, options);
  if (dataset.x.dim() != 3 && dataset.x.dim() != 4) {
    refuse(images.string(),
           fmt::format("has the dimensions {}, where images have 3 (N x H x W) or 4 (N x C x H x W). Are images and "
                       "labels swapped?",
                       fmt::join(dataset.x.sizes(), " x ")));
  }
  const torch::Tensor bytes = read_idx(labels, options);
  if (bytes.dim() != 1) {
    refuse(labels.string(), fmt::format("has the dimensions {}, where labels have one. Are images and labels swapped?",
                                        fmt::join(bytes.sizes(), " x ")));
  }
  if (bytes.size(0) != dataset.x.size(0)) {
    refuse(labels.string(), fmt::format("holds {} labels for the {} images of {}. Give the two files of one set.",
                                        bytes.size(0), dataset.x.size(0), images.string()));
  }
  dataset.classes = check_labels(labels, bytes, options.classes);
  dataset.y = bytes.to(at::kLong);
  return dataset;
}

}  // namespace brigade::data
