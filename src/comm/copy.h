// Copies of spans, and how results are stored.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace brigade::comm {

inline constexpr std::size_t kCacheLine = 64;

// Asks for a line that is about to be written, which others have read: hwy::Prefetch asks for reading only, and writing would
// have to ask once more.
inline void prefetch_to_write(const std::byte* line) noexcept {
#if defined(__x86_64__)
  asm volatile("prefetchw %0" : : "m"(*line));  // without an effect on processors that do not know it
#else
  __builtin_prefetch(line, 1);
#endif
}

// A part of a span, in bytes from its beginning.
struct Range {
  std::size_t begin = 0;
  std::size_t end = 0;

  bool empty() const noexcept { return begin >= end; }
  std::size_t size() const noexcept { return end - begin; }
};

template <class Byte>
std::span<Byte> part(std::span<Byte> bytes, Range range) noexcept {
  return bytes.subspan(range.begin, range.size());
}

enum class Stores : std::uint8_t {
  kCached,
  // Past the caches: a line is not read before it is written, and leaves the caches if it was there. Pays for results
  // that replace none of their inputs and are too large to be found in a cache later; costs twice the time in place.
  kStreaming,
};

// Both spans have one size, and are the same or do not overlap. Streaming stores are complete on return: whoever learns of
// it by a release and an acquire sees them.
void copy_bytes(std::span<const std::byte> from, std::span<std::byte> to, Stores stores = Stores::kCached) noexcept;

}  // namespace brigade::comm
