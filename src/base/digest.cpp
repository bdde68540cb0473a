#include "brigade/base/digest.h"

// Compiled in: the functions of Debian's library take twice the time.
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/digest_kernels.h"

namespace brigade {
namespace {

DigestKernel best_kernel() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2")) return digest_avx2;
#endif
  return digest_baseline;
}

}  // namespace

std::uint64_t digest_baseline(const void* bytes, std::size_t size) { return XXH3_64bits(bytes, size); }

struct Digest::State {
  XXH3_state_t xxh3;  // of 64-byte alignment, which new keeps
};

Digest::Digest() : state_(std::make_unique<State>()) { XXH3_64bits_reset(&state_->xxh3); }
Digest::~Digest() = default;
Digest::Digest(Digest&&) noexcept = default;
Digest& Digest::operator=(Digest&&) noexcept = default;

void Digest::add(std::span<const std::byte> bytes) { XXH3_64bits_update(&state_->xxh3, bytes.data(), bytes.size()); }

std::uint64_t Digest::value() const { return XXH3_64bits_digest(&state_->xxh3); }

std::uint64_t digest_of(std::span<const std::byte> bytes) {
  static const DigestKernel kernel = best_kernel();
  return kernel(bytes.data(), bytes.size());
}

}  // namespace brigade
