// Writes safetensors files for tests by hand, good ones and parts of bad ones.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "data/files.h"

namespace brigade::data {

inline Bytes safetensors_file(std::string_view json, std::size_t data_bytes) {
  Bytes file;
  for (int i = 0; i < 8; ++i) file.push_back(static_cast<std::byte>(static_cast<std::uint64_t>(json.size()) >> 8 * i));
  append(file, text_bytes(json));
  for (std::size_t i = 0; i < data_bytes; ++i) file.push_back(static_cast<std::byte>(i));
  return file;
}

// {"a": one F32 tensor [2, 2] that takes the first 16 bytes, with these fields instead of or besides its own}
inline std::string described(std::string_view fields) { return R"({"a":{)" + std::string(fields) + "}}"; }

inline constexpr std::string_view kFourFloats = R"("dtype":"F32","shape":[2,2],"data_offsets":[0,16])";

}  // namespace brigade::data
