// Compiled with -mavx2: nothing but xxhash, whose functions are static here, may be included.
#define XXH_INLINE_ALL
#define XXH_VECTOR XXH_AVX2
#include <xxhash.h>

#include "base/digest_kernels.h"

std::uint64_t brigade::digest_avx2(const void* bytes, std::size_t size) { return XXH3_64bits(bytes, size); }
