// Buffers as tensors have them: a vector from the heap begins 16 bytes off a cache line, and wide loads then cross two.
#pragma once

#include <cstddef>
#include <new>
#include <vector>

namespace brigade::bench {

template <class T>
struct CacheLineAllocator {
  using value_type = T;
  static constexpr std::align_val_t kAlignment{64};

  CacheLineAllocator() = default;
  template <class U>
  CacheLineAllocator(const CacheLineAllocator<U>&) noexcept {}

  T* allocate(std::size_t count) { return static_cast<T*>(::operator new(count * sizeof(T), kAlignment)); }
  void deallocate(T* memory, std::size_t) noexcept { ::operator delete(memory, kAlignment); }
  bool operator==(const CacheLineAllocator&) const noexcept { return true; }
};

template <class T>
using AlignedVector = std::vector<T, CacheLineAllocator<T>>;

}  // namespace brigade::bench
