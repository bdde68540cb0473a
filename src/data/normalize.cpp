#include "brigade/data/normalize.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include "brigade/base/error.h"

namespace brigade::data {

torch::Tensor normalize(const torch::Tensor& bytes, double mean, double std) {
  if (!bytes.defined() || bytes.scalar_type() != at::kByte) {
    throw InvalidArgument(fmt::format("normalize takes uint8 images, and was given {}.",
                                      bytes.defined() ? c10::toString(bytes.scalar_type()) : "an undefined tensor"));
  }
  // Written so that a NaN is refused as well.
  if (!(std > 0)) throw InvalidArgument(fmt::format("normalize needs a standard deviation above 0, not {}.", std));
  // Two passes in place rather than one operator with a factor: that one fuses its product and sum on some processors
  // only.
  return bytes.to(at::kFloat).mul_(1 / (255 * std)).add_(-mean / std);
}

}  // namespace brigade::data
