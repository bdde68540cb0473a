// Any bytes at all either end in a DataError that names them, or are a safetensors file: its tensors tile its data, and
// written again they are read back as they were, from bytes that no longer change.
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
#include "data/safetensors_format.h"

namespace {

using namespace brigade;
using namespace brigade::data;

using Bytes = std::vector<std::byte>;

constexpr SafeTensorsLimits kLimits = {.header_bytes = 1 << 20, .data_bytes = 1 << 20};

struct Tensor {
  comm::DType dtype = {};
  std::vector<std::int64_t> sizes = {};
  Bytes bytes = {};

  friend bool operator==(const Tensor&, const Tensor&) = default;
};

struct Content {
  std::map<std::string, Tensor> tensors = {};
  std::map<std::string, std::string> metadata = {};

  friend bool operator==(const Content&, const Content&) = default;
};

void require(bool condition) {
  if (!condition) std::abort();
}

// Nothing when the bytes were refused.
std::optional<Content> read(std::span<const std::byte> file) {
  try {
    MemorySource source("input", file);
    const SafeTensorsHeader header = read_safetensors_header(source, kLimits);
    Content content{.metadata = header.metadata};
    std::uint64_t total = 0;
    read_safetensors_data(source, header, [&](const SafeTensorsEntry& entry) -> std::span<std::byte> {
      require(!content.tensors.contains(entry.name));
      require(entry.begin == total);
      total = entry.end;
      Tensor& tensor = content.tensors[entry.name];
      tensor = {.dtype = entry.dtype, .sizes = entry.sizes, .bytes = Bytes(entry.end - entry.begin)};
      return tensor.bytes;
    });
    require(total == header.data_bytes && total <= file.size());
    return content;
  } catch (const DataError& error) {
    require(std::string_view(error.what()).starts_with("input: "));
    return std::nullopt;
  }
}

Bytes write(const Content& content) {
  std::vector<SafeTensorsEntry> entries;
  for (const auto& [name, tensor] : content.tensors) {
    entries.push_back({.name = name, .dtype = tensor.dtype, .sizes = tensor.sizes});
  }
  Bytes file;
  write_entries(
      entries, content.metadata,
      [&](const SafeTensorsEntry& entry) -> std::span<const std::byte> { return content.tensors.at(entry.name).bytes; },
      [&](std::span<const std::byte> bytes) { file.insert(file.end(), bytes.begin(), bytes.end()); });
  return file;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto content = read(std::as_bytes(std::span(data, size)));
  if (!content) return 0;
  const Bytes written = write(*content);
  const auto again = read(written);
  require(again == content);
  require(write(*again) == written);
  return 0;
}
