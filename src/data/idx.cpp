#include "brigade/data/idx.h"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <memory>
#include <utility>

#include "data/byte_source.h"
#include "data/errors.h"
#include "data/idx_parser.h"
#include "data/pair.h"

namespace brigade::data {
namespace {

// The tensor takes the bytes over, without a copy.
torch::Tensor to_tensor(IdxArray array) {
  const auto owner = std::make_shared<IdxArray>(std::move(array));
  return at::from_blob(
      owner->bytes.data(), owner->sizes, [owner](void*) {}, at::TensorOptions().dtype(at::kByte));
}

}  // namespace

torch::Tensor read_idx(const std::filesystem::path& file, IdxOptions options) {
  const auto source = open_bytes(file);
  return to_tensor(parse_idx(*source, options.max_bytes));
}

Dataset idx(const std::filesystem::path& images, const std::filesystem::path& labels, IdxOptions options) {
  check_classes(options.classes);
  NamedTensor x{.name = images.string(), .tensor = read_idx(images, options)};
  const auto dimensions = x.tensor.dim();
  if (dimensions != 3 && dimensions != 4) {
    refuse(x.name,
           fmt::format("has the dimensions {}, where images have 3 (N x H x W) or 4 (N x C x H x W). Are images and "
                       "labels swapped?",
                       fmt::join(x.tensor.sizes(), " x ")));
  }
  NamedTensor y{.name = labels.string(), .tensor = read_idx(labels, options)};
  if (y.tensor.dim() != 1) {
    refuse(y.name, fmt::format("has the dimensions {}, where labels have one. Are images and labels swapped?",
                               fmt::join(y.tensor.sizes(), " x ")));
  }
  return pair_up(std::move(x), std::move(y), options.classes);
}

}  // namespace brigade::data
