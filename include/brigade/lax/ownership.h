// Whose memory a tensor lies in.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>

namespace brigade::lax::detail {

// Whether the caller's `handles` to `tensor` are the only ways to its memory, so that it may be written into, or handed on
// as something else. Memory that libtorch did not allocate (from_blob) is somebody else's, and not resizable; that of what
// requires a gradient may be needed for it.
inline bool is_held_by(std::size_t handles, const at::Tensor& tensor) {
  return tensor.use_count() <= handles && tensor.has_storage() && tensor.storage().use_count() == 1 &&
         tensor.storage().resizable() && !tensor.requires_grad();
}

}  // namespace brigade::lax::detail
