// Writes NPY files for tests by hand, good ones and parts of bad ones.
#pragma once

#include <string>
#include <string_view>

#include "data/files.h"

namespace brigade::data {

// Version 1, or one that has 4 bytes for the size of the header. Elements' bytes are 0, 1, 2, ...
inline Bytes npy_file(std::string_view header, std::size_t data_bytes, int version = 1) {
  Bytes file = text_bytes("\x93NUMPY");
  file.push_back(static_cast<std::byte>(version));
  file.push_back(std::byte{0});
  for (int i = 0; i < (version == 1 ? 2 : 4); ++i) file.push_back(static_cast<std::byte>(header.size() >> 8 * i));
  append(file, text_bytes(header));
  for (std::size_t i = 0; i < data_bytes; ++i) file.push_back(static_cast<std::byte>(i));
  return file;
}

inline std::string npy_header(const std::string& descr, const std::string& shape,
                              const std::string& fortran = "False") {
  return "{'descr': '" + descr + "', 'fortran_order': " + fortran + ", 'shape': " + shape + ", }   \n";
}

}  // namespace brigade::data
