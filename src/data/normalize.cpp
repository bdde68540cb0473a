#include "brigade/data/normalize.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include "brigade/base/error.h"
#include "data/normalize_kernel.h"

namespace brigade::data {

torch::Tensor normalize(const torch::Tensor& bytes, double mean, double std) {
  if (!bytes.defined() || bytes.scalar_type() != at::kByte) {
    throw InvalidArgument(fmt::format("normalize takes uint8 images, and was given {}.",
                                      bytes.defined() ? c10::toString(bytes.scalar_type()) : "an undefined tensor"));
  }
  // Written so that a NaN is refused as well.
  if (!(std > 0)) throw InvalidArgument(fmt::format("normalize needs a standard deviation above 0, not {}.", std));
  const double scale = 1 / (255 * std);
  const double shift = -mean / std;
  // On other devices two operators, since one with a factor would fuse its product and sum.
  if (!bytes.device().is_cpu()) return bytes.to(at::kFloat).mul_(scale).add_(shift);
  const torch::Tensor source = bytes.contiguous();
  torch::Tensor values = at::empty(source.sizes(), source.options().dtype(at::kFloat));
  kernels::scale_bytes(source.data_ptr<std::uint8_t>(), static_cast<std::size_t>(source.numel()),
                       static_cast<float>(scale), static_cast<float>(shift), values.data_ptr<float>());
  return values;
}

}  // namespace brigade::data
