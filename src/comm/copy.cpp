#include "comm/copy.h"

#include <hwy/cache_control.h>

#include <cstring>

#include "comm/reduce_kernels.h"

namespace brigade::comm {

void copy_bytes(std::span<const std::byte> from, std::span<std::byte> to, Stores stores) noexcept {
  if (from.empty() || from.data() == to.data()) return;
  if (stores == Stores::kCached) {
    std::memcpy(to.data(), from.data(), from.size());
    return;
  }
  reduce_vectorised({}, DType::kUint8, {&from, 1}, {&to, 1}, {.begin = 0, .end = from.size()}, stores);
  hwy::FlushStream();
}

}  // namespace brigade::comm
