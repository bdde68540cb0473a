#include "data/pair.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "brigade/base/error.h"
#include "data/errors.h"

namespace brigade::data {
namespace {

// Contiguous int64.
torch::Tensor to_labels(const NamedTensor& y) {
  const at::ScalarType type = y.tensor.scalar_type();
  if (!at::isIntegralType(type, /*includeBool=*/false)) {
    refuse(y.name, fmt::format("holds {}, where labels are whole numbers. Are the two swapped?", c10::toString(type)));
  }
  return y.tensor.to(at::kLong).contiguous();
}

// Returns the number of classes. Labels of a row count one after another.
std::int64_t check_labels(const std::string& name, const torch::Tensor& labels, std::int64_t classes) {
  const auto* begin = labels.data_ptr<std::int64_t>();
  const auto [smallest, largest] = std::minmax_element(begin, begin + labels.numel());
  const std::int64_t per_row = labels.numel() / labels.size(0);
  if (*smallest < 0) {
    refuse(name, fmt::format("label {} at row {} is below 0. Number the classes from 0.", *smallest,
                             (smallest - begin) / per_row));
  }
  if (classes != 0 && *largest >= classes) {
    refuse(name,
           fmt::format("label {} at row {} is outside of the {} classes, 0 to {}. Give the number of classes that "
                       "the labels have, or the file that belongs to these rows.",
                       *largest, (largest - begin) / per_row, classes, classes - 1));
  }
  return classes != 0 ? classes : *largest + 1;
}

}  // namespace

void check_classes(std::int64_t classes) {
  if (classes >= 0) return;
  throw InvalidArgument(
      fmt::format("{} classes cannot be: give their number, or 0 to take it from the labels.", classes));
}

Dataset pair_up(NamedTensor x, NamedTensor y, std::int64_t classes) {
  for (const NamedTensor* part : {&x, &y}) {
    if (part->tensor.dim() == 0 || part->tensor.numel() == 0) {
      refuse(part->name, "holds no rows. Give an array with one row or more, along its first dimension.");
    }
  }
  if (y.tensor.size(0) != x.tensor.size(0)) {
    refuse(y.name, fmt::format("holds {} labels for the {} rows of {}. Give the two of one set.", y.tensor.size(0),
                               x.tensor.size(0), x.name));
  }
  torch::Tensor labels = to_labels(y);
  classes = check_labels(y.name, labels, classes);
  return {.x = std::move(x.tensor), .y = std::move(labels), .classes = classes};
}

}  // namespace brigade::data
