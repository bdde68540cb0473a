#include "comm/copy.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "comm/copy.cpp"
#include <hwy/foreach_target.h>  // compiles this file once for each instruction set
#include <hwy/highway.h>

#include <algorithm>
#include <cstring>

HWY_BEFORE_NAMESPACE();
namespace brigade::comm::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Whole lines only: one that is written in parts costs more than through the caches.
void stream(const std::uint8_t* from, std::uint8_t* to, std::size_t bytes) {
  const hn::ScalableTag<std::uint8_t> d;
  const std::size_t head = std::min((0 - reinterpret_cast<std::uintptr_t>(to)) % kCacheLine, bytes);
  std::memcpy(to, from, head);
  std::size_t at = head;
  for (; at + kCacheLine <= bytes; at += kCacheLine) {
    for (std::size_t i = at; i < at + kCacheLine; i += hn::Lanes(d)) hn::Stream(hn::LoadU(d, from + i), d, to + i);
  }
  std::memcpy(to + at, from + at, bytes - at);
}

}  // namespace brigade::comm::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <hwy/cache_control.h>

namespace brigade::comm {

HWY_EXPORT(stream);

void copy_bytes(std::span<const std::byte> from, std::span<std::byte> to, Stores stores) noexcept {
  if (from.empty() || from.data() == to.data()) return;
  if (stores == Stores::kCached) {
    std::memcpy(to.data(), from.data(), from.size());
    return;
  }
  HWY_DYNAMIC_DISPATCH(stream)
  (reinterpret_cast<const std::uint8_t*>(from.data()), reinterpret_cast<std::uint8_t*>(to.data()), from.size());
  hwy::FlushStream();
}

}  // namespace brigade::comm
#endif
