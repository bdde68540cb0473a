// The safetensors format, without torch: what a file's header says, and the two ways to get from it to bytes.
//
// A little-endian 64-bit number N, N bytes of JSON that begin with `{` and may end in spaces, then the data. The JSON maps
// each tensor's name to {"dtype", "shape", "data_offsets": [begin, end]}, offsets counted from the first byte of the
// data, elements little-endian, the last dimension fastest; "__metadata__" maps strings to strings.
// https://huggingface.co/docs/safetensors/index
//
// Strict, where the reference reader lets pass: names that occur twice (whatever their spelling in JSON), unknown fields,
// empty names and names with control characters, more than 64 dimensions, dimensions above 2^63 - 1 even of an empty
// tensor, and bools that are neither 0 nor 1 are refused.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "brigade/comm/dtype.h"
#include "brigade/data/files.h"
#include "data/byte_source.h"

namespace brigade::data {

inline constexpr std::uint64_t kSafeTensorsMaxHeader = 100'000'000;  // bytes; the reference reads no larger one
inline constexpr std::size_t kSafeTensorsMaxMetadata = 65536;  // entries; each takes more memory than it has bytes
inline constexpr std::string_view kSafeTensorsMetadata = "__metadata__";

struct SafeTensorsEntry {
  std::string name = {};
  comm::DType dtype = comm::DType::kUint8;
  std::vector<std::int64_t> sizes = {};
  std::uint64_t begin = 0;  // of its bytes, counted from the first of the data
  std::uint64_t end = 0;
};

struct SafeTensorsHeader {
  std::vector<SafeTensorsEntry> entries = {};  // in the order of their bytes, which they tile without a hole
  std::map<std::string, std::string> metadata = {};
  std::uint64_t data_bytes = 0;
};

// The format's names of the dtypes that torch has as well, "F32" for one.
std::optional<comm::DType> safetensors_dtype(std::string_view name) noexcept;
std::optional<std::string_view> safetensors_name(comm::DType dtype) noexcept;

// Why `name` cannot be a tensor's; nothing when it can. Whether it is UTF-8 is not looked at.
std::optional<std::string_view> safetensors_name_problem(std::string_view name) noexcept;

// Parses the N bytes of JSON. Throws DataError that begins with `file`.
SafeTensorsHeader parse_safetensors_header(std::string_view file, std::string_view json);

struct SafeTensorsLimits {
  std::uint64_t header_bytes = 0;  // of the JSON
  std::uint64_t data_bytes = 0;
};

// Reads everything before the data, and checks that exactly the data follows; `source` must know how many bytes are
// still to come. Memory is a small multiple of the header. Throws DataError.
SafeTensorsHeader read_safetensors_header(ByteSource& source, SafeTensorsLimits limits);

// Reads the data behind the header: each tensor, in the order of the entries, to where `place` says, which is called
// right before and returns as many bytes as the entry has. Throws DataError when the source ends early or goes on, or a
// bool is neither 0 nor 1.
void read_safetensors_data(ByteSource& source, const SafeTensorsHeader& header,
                           const std::function<std::span<std::byte>(const SafeTensorsEntry&)>& place);

// Writes a file from its first byte to its last, in pieces, the way the reference does, which makes the bytes a function
// of the contents: tensors by descending size of their elements, then by dtype in the reference's order, then by name;
// metadata by key; the header padded with spaces so that the data begins at a multiple of 8. Of `entries`, whose names
// differ, begin and end are not looked at; `bytes_of` is called once for each, in the order of the file. Throws
// InvalidArgument, before anything is written, for what the reader would refuse (a bool, right before its tensor is).
void write_entries(std::vector<SafeTensorsEntry> entries, const std::map<std::string, std::string>& metadata,
                   const std::function<std::span<const std::byte>(const SafeTensorsEntry&)>& bytes_of,
                   const ByteSink& sink);

}  // namespace brigade::data
