// XXH3 compiled for what a processor may have; all give the same number.
#pragma once

#include <cstddef>
#include <cstdint>

namespace brigade {

using DigestKernel = std::uint64_t (*)(const void* bytes, std::size_t size);

std::uint64_t digest_baseline(const void* bytes, std::size_t size);
#if defined(__x86_64__)
std::uint64_t digest_avx2(const void* bytes, std::size_t size);
#endif

}  // namespace brigade
