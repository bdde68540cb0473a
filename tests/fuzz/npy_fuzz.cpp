// Any bytes at all either end in a DataError that names them, or are an NPY file, and one written by hand of what was
// read is read as the same.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "brigade/base/error.h"
#include "data/byte_source.h"
#include "data/npy_parser.h"

namespace {

using namespace brigade;
using namespace brigade::data;

using Bytes = std::vector<std::byte>;

constexpr std::uint64_t kMaxBytes = 1 << 20;

struct Array {
  NpyHeader header = {};
  Bytes bytes = {};
};

void require(bool condition) {
  if (!condition) std::abort();
}

// Nothing when the bytes were refused.
std::optional<Array> read(std::span<const std::byte> file) {
  try {
    MemorySource source("input", file);
    Array array{.header = read_npy_header(source, kMaxBytes)};
    require(array.header.bytes <= std::min<std::uint64_t>(kMaxBytes, file.size()));
    array.bytes.resize(array.header.bytes);
    read_npy_data(source, array.header, array.bytes);
    return array;
  } catch (const DataError& error) {
    require(std::string_view(error.what()).starts_with("input: "));
    return std::nullopt;
  }
}

// Little-endian, version 2.
Bytes write(const Array& array) {
  const std::map<comm::DType, std::string> names = {
      {comm::DType::kBool, "|b1"},    {comm::DType::kUint8, "|u1"},   {comm::DType::kInt8, "|i1"},
      {comm::DType::kInt16, "<i2"},   {comm::DType::kInt32, "<i4"},   {comm::DType::kInt64, "<i8"},
      {comm::DType::kFloat16, "<f2"}, {comm::DType::kFloat32, "<f4"}, {comm::DType::kFloat64, "<f8"}};
  std::string header = "{'fortran_order': ";
  header += array.header.axis_order == AxisOrder::kFirstFastest ? "True" : "False";
  header += ", 'descr': '" + names.at(array.header.dtype) + "', 'shape': (";
  for (const std::int64_t size : array.header.sizes) header += std::to_string(size) + ",";
  header += ")}";
  std::string file = "\x93NUMPY";
  file += {2, 0};
  for (int i = 0; i < 4; ++i) file += static_cast<char>(header.size() >> 8 * i);
  file += header;
  Bytes bytes(file.size());
  std::copy_n(reinterpret_cast<const std::byte*>(file.data()), file.size(), bytes.begin());
  bytes.insert(bytes.end(), array.bytes.begin(), array.bytes.end());
  return bytes;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto array = read(std::as_bytes(std::span(data, size)));
  if (!array) return 0;
  const auto again = read(write(*array));
  require(again.has_value());
  require(again->bytes == array->bytes && again->header.sizes == array->header.sizes);
  require(again->header.dtype == array->header.dtype && again->header.axis_order == array->header.axis_order);
  return 0;
}
