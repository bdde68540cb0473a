// All that a source has.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "data/byte_source.h"

namespace brigade::data {

// Appends what is left of `source` to `bytes`. Memory is at most twice what arrived. Throws DataError when `bytes` would
// hold more than max_bytes.
void read_all(ByteSource& source, std::uint64_t max_bytes, std::vector<std::byte>& bytes);

}  // namespace brigade::data
