// The values of several devices in one tensor: taken apart before they travel, put together when they have come.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>

#include "brigade/lax/gather.h"

namespace brigade::lax::detail {

// The dimension of `layout` in a tensor of `rank` dimensions, counted from the front; `tensor` is leaf number `leaf`, of
// which it is made. Throws ShapeError when it is not there.
std::int64_t checked_dim(const Invocation& call, const at::Tensor& tensor, Layout layout, std::int64_t rank,
                         std::size_t leaf);

// The dimension along which `tensor` itself goes to the devices in parts. Throws ShapeError also when its size does not fit.
std::int64_t scattered_dim(const Invocation& call, const at::Tensor& tensor, Layout layout, std::size_t leaf);

// From one tensor to `count` blocks, contiguous and one after the other: (count, *block). `dim` counts from the front.
at::Tensor to_blocks(const at::Tensor& tensor, std::int64_t dim, std::int64_t count, bool tiled);

// From (count, *block) to one tensor, contiguous and no view.
at::Tensor from_blocks(const at::Tensor& blocks, std::int64_t dim, bool tiled);

// `layout` as tags show it: empty for the default.
std::string described(Layout layout);

}  // namespace brigade::lax::detail
