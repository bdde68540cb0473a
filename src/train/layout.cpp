#include "layout.h"

#include <ATen/ATen.h>
#include <c10/util/strides.h>
#include <fmt/format.h>

#include <algorithm>

#include "brigade/base/error.h"
#include "brigade/optim/block_sums.h"

namespace brigade::training {
namespace {

constexpr std::size_t kAlignment = 64;  // a cache line, and the widest vector

std::size_t rounded_up(std::size_t count, std::size_t multiple) { return (count + multiple - 1) / multiple * multiple; }

void require_trainable(const std::string& name, const at::Tensor& tensor) {
  const auto refuse = [&](std::string_view why) { throw InvalidArgument(fmt::format("parameter {}: {}", name, why)); };
  if (tensor.layout() != at::kStrided || !tensor.device().is_cpu()) {
    refuse(fmt::format("it is {} on {}; DataParallel trains dense tensors on the CPU", c10::str(tensor.layout()),
                       tensor.device().str()));
  }
  if (tensor.scalar_type() != at::kFloat && tensor.scalar_type() != at::kDouble) {
    refuse(
        fmt::format("it is {}; parameters are float32 or float64. For bfloat16 arithmetic keep them in float32 and set "
                    ".precision = Precision::kBFloat16",
                    c10::toString(tensor.scalar_type())));
  }
}

// Those of the tensor where they leave no gap, so that its order in memory stays; else those of a contiguous one.
std::vector<std::int64_t> dense_strides(const at::Tensor& tensor) {
  if (tensor.is_non_overlapping_and_dense()) return tensor.strides().vec();
  const auto contiguous = c10::contiguous_strides(tensor.sizes());
  return {contiguous.begin(), contiguous.end()};
}

}  // namespace

Layout::Layout(const std::vector<Entry>& tensors) {
  for (const auto& [name, tensor] : tensors) {
    require_trainable(name, tensor);
    Segment& segment = segments_.emplace_back(Segment{
        .name = name, .sizes = tensor.sizes().vec(), .strides = dense_strides(tensor), .dtype = tensor.scalar_type()});
    segment.offset = bytes_;
    segment.elements = static_cast<std::size_t>(tensor.numel());
    segment.bytes = tensor.nbytes();
    segment.first_block = blocks_;
    segment.blocks = optim::block_count(segment.elements);
    bytes_ = rounded_up(bytes_ + segment.bytes, kAlignment);
    blocks_ += segment.blocks;
  }
}

std::vector<Part> Layout::parts(BlockRange range) const {
  std::vector<Part> parts;
  for (std::size_t i = 0; i < segments_.size(); ++i) {
    const Segment& segment = segments_[i];
    const std::size_t begin = std::max(range.begin, segment.first_block);
    const std::size_t end = std::min(range.end, segment.first_block + segment.blocks);
    if (begin >= end) continue;
    parts.push_back({.segment = i,
                     .begin = (begin - segment.first_block) * optim::kBlockElements,
                     .end = std::min((end - segment.first_block) * optim::kBlockElements, segment.elements),
                     .first_block = begin});
  }
  return parts;
}

Flat::Flat(const Layout& layout)
    : layout_(&layout), memory_(at::zeros({static_cast<std::int64_t>(layout.bytes())}, at::kByte)) {}

at::Tensor Flat::view(std::size_t index) const {
  const Segment& segment = layout_->segments()[index];
  // A tensor of its own on the same storage: not a view of `memory_`, with which it would share the counter of versions.
  const auto first = static_cast<std::int64_t>(segment.offset / c10::elementSize(segment.dtype));
  return at::empty({0}, at::TensorOptions(segment.dtype))
      .set_(memory_.storage(), first, segment.sizes, segment.strides);
}

}  // namespace brigade::training
