// Writes IDX files for tests, good ones and parts of bad ones.
#pragma once

#include <zlib.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

#include "support/temporary_folder.h"

namespace brigade::data {

using Bytes = std::vector<std::byte>;

inline void append(Bytes& bytes, const Bytes& more) { bytes.insert(bytes.end(), more.begin(), more.end()); }

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

inline Bytes gzip(const Bytes& plain) {
  z_stream stream = {};
  if (deflateInit2(&stream, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK) throw std::runtime_error("zlib");
  Bytes packed(deflateBound(&stream, plain.size()) + 64);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(plain.data()));
  stream.avail_in = static_cast<uInt>(plain.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  const int result = deflate(&stream, Z_FINISH);
  const auto end = packed.end() - static_cast<std::ptrdiff_t>(stream.avail_out);
  deflateEnd(&stream);
  if (result != Z_STREAM_END) throw std::runtime_error("zlib");
  return Bytes(packed.begin(), end);
}

inline Bytes read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  const auto* begin = reinterpret_cast<const std::byte*>(text.data());
  return Bytes(begin, begin + text.size());
}

}  // namespace brigade::data
