// The IDX format of the MNIST files, without torch.
//
// Two zero bytes, one byte for the element type, one for the number of dimensions, each dimension as a big-endian
// 32-bit number, then the elements, the last dimension fastest. http://yann.lecun.com/exdb/mnist/
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "data/byte_source.h"

namespace brigade::data {

struct IdxArray {
  std::vector<std::int64_t> sizes;  // at least one, none of them zero
  std::vector<std::byte> bytes;     // the product of sizes
};

inline constexpr std::size_t kIdxMaxDimensions = 8;

// Reads the whole of `source`, which must hold one array of unsigned bytes and nothing behind it. Throws DataError, and
// refuses an array above `max_bytes`. Memory follows the bytes that arrive, not what the header announces.
IdxArray parse_idx(ByteSource& source, std::uint64_t max_bytes);

}  // namespace brigade::data
