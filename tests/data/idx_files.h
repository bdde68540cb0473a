// Writes IDX files for tests, good ones and parts of bad ones.
#pragma once

#include <cstdint>
#include <vector>

#include "data/files.h"

namespace brigade::data {

inline Bytes idx_header(const std::vector<std::uint32_t>& sizes, int type = 0x08) {
  Bytes bytes = {std::byte{0}, std::byte{0}, static_cast<std::byte>(type), static_cast<std::byte>(sizes.size())};
  for (const std::uint32_t size : sizes) {
    for (const int shift : {24, 16, 8, 0}) bytes.push_back(static_cast<std::byte>(size >> shift));
  }
  return bytes;
}

// Element i holds i * 7 modulo `below`.
inline Bytes idx_file(const std::vector<std::uint32_t>& sizes, std::uint32_t below = 256) {
  Bytes bytes = idx_header(sizes);
  std::uint32_t count = 1;
  for (const std::uint32_t size : sizes) count *= size;
  for (std::uint32_t i = 0; i < count; ++i) bytes.push_back(static_cast<std::byte>(i * 7 % below));
  return bytes;
}

}  // namespace brigade::data
