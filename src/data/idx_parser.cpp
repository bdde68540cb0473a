#include "data/idx_parser.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "data/errors.h"

namespace brigade::data {
namespace {

constexpr int kUnsignedByte = 0x08;
constexpr std::size_t kFirstChunk = std::size_t{1} << 20;

std::string_view element_name(int code) {
  switch (code) {
    case 0x09:
      return "signed bytes";
    case 0x0B:
      return "16-bit integers";
    case 0x0C:
      return "32-bit integers";
    case 0x0D:
      return "32-bit floats";
    case 0x0E:
      return "64-bit floats";
    default:
      return "elements of an unknown type";
  }
}

// Reads `out` in full; `what` was about to be read.
void read_header(ByteSource& source, std::span<std::byte> out, std::string_view what) {
  const std::size_t count = source.read(out);
  if (count == out.size()) return;
  refuse(source.name(),
         fmt::format("ends within {}: {} of {} bytes are there. It is no IDX file, or it is cut short; fetch it "
                     "again.",
                     what, count, out.size()));
}

std::size_t read_dimension_count(ByteSource& source) {
  std::array<std::byte, 4> magic = {};
  read_header(source, magic, "the first four bytes");
  const auto at = [&magic](std::size_t i) { return std::to_integer<int>(magic[i]); };
  if (at(0) != 0 || at(1) != 0) {
    refuse(source.name(),
           fmt::format("starts with the bytes {:02x} {:02x} {:02x} {:02x}, where an IDX file starts with 00 00. "
                       "Give an IDX file, plain or packed by gzip.",
                       at(0), at(1), at(2), at(3)));
  }
  if (at(2) != kUnsignedByte) {
    refuse(source.name(),
           fmt::format("holds {} (type 0x{:02x}). Only unsigned bytes (type 0x08) are read; convert the file.",
                       element_name(at(2)), at(2)));
  }
  const auto dimensions = static_cast<std::size_t>(at(3));
  if (dimensions == 0 || dimensions > kIdxMaxDimensions) {
    refuse(source.name(),
           fmt::format("has {} dimensions, where 1 to {} can be read. Its header is damaged, or it is no IDX file.",
                       dimensions, kIdxMaxDimensions));
  }
  return dimensions;
}

std::vector<std::int64_t> read_sizes(ByteSource& source, std::size_t dimensions) {
  std::array<std::byte, 4 * kIdxMaxDimensions> raw = {};
  read_header(source, std::span(raw).first(4 * dimensions), "its dimensions");
  std::vector<std::int64_t> sizes(dimensions);
  for (std::size_t i = 0; i < raw.size() && i < 4 * dimensions; ++i) {
    sizes[i / 4] = sizes[i / 4] << 8 | std::to_integer<std::int64_t>(raw[i]);
  }
  return sizes;
}

std::optional<std::uint64_t> product(const std::vector<std::int64_t>& sizes) {
  std::uint64_t result = 1;
  for (const std::int64_t size : sizes) {
    if (__builtin_mul_overflow(result, static_cast<std::uint64_t>(size), &result)) return std::nullopt;
  }
  return result;
}

// The number of bytes that `sizes` announce, once nothing speaks against it any more.
std::uint64_t checked_bytes(const ByteSource& source, const std::vector<std::int64_t>& sizes, std::uint64_t max_bytes) {
  const std::string announced = fmt::format("{}", fmt::join(sizes, " x "));
  if (std::find(sizes.begin(), sizes.end(), 0) != sizes.end()) {
    refuse(source.name(),
           fmt::format("holds nothing: its dimensions are {}. Give a file with at least one element.", announced));
  }
  const auto bytes = product(sizes);
  if (!bytes || *bytes > max_bytes) {
    refuse(source.name(),
           fmt::format("announces {} bytes, above the limit of {}. Raise max_bytes if that is what it should hold; "
                       "otherwise its header is damaged.",
                       announced, max_bytes));
  }
  if (*bytes > source.at_most()) {
    refuse(source.name(),
           fmt::format("announces {} = {} bytes, but at most {} can follow. It is cut short, or its header is "
                       "damaged; fetch it again.",
                       announced, *bytes, source.at_most()));
  }
  return *bytes;
}

// Doubles the buffer as bytes arrive: a header that lies costs no more memory than twice what came.
std::vector<std::byte> read_elements(ByteSource& source, std::uint64_t count) {
  std::vector<std::byte> bytes;
  while (bytes.size() < count) {
    const std::size_t start = bytes.size();
    const std::size_t chunk =
        static_cast<std::size_t>(std::min<std::uint64_t>(std::max(start, kFirstChunk), count - start));
    bytes.reserve(start + chunk);
    bytes.resize(start + chunk);
    const std::size_t arrived = source.read(std::span(bytes).subspan(start));
    if (arrived < chunk) {
      refuse(source.name(),
             fmt::format("ends after {} of {} elements. It is cut short; fetch it again.", start + arrived, count));
    }
  }
  return bytes;
}

}  // namespace

IdxArray parse_idx(ByteSource& source, std::uint64_t max_bytes) {
  IdxArray array;
  array.sizes = read_sizes(source, read_dimension_count(source));
  array.bytes = read_elements(source, checked_bytes(source, array.sizes, max_bytes));
  // One byte more than there should be; for a gzip stream this also verifies its checksum.
  std::array<std::byte, 1> extra = {};
  if (source.read(extra) != 0) {
    refuse(source.name(),
           fmt::format("goes on after its {} elements ({}). Its header is damaged, or other bytes were appended; "
                       "fetch it again.",
                       array.bytes.size(), fmt::join(array.sizes, " x ")));
  }
  return array;
}

}  // namespace brigade::data
