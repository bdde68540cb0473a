#include <fmt/format.h>

#include <array>

#include "data/elements.h"
#include "data/errors.h"
#include "data/safetensors_format.h"

namespace brigade::data {
namespace {

constexpr std::string_view kNoSuchFile = "It is no safetensors file, or it is damaged; fetch it again.";

std::uint64_t read_header_size(ByteSource& source, std::uint64_t limit) {
  std::array<std::byte, 8> raw = {};
  const std::size_t count = source.read(raw);
  if (count < raw.size()) {
    refuse(source.name(),
           fmt::format("ends after {} bytes, where the size of the header takes 8. {}", count, kNoSuchFile));
  }
  std::uint64_t size = 0;
  for (std::size_t i = raw.size(); i-- > 0;) size = size << 8 | std::to_integer<std::uint64_t>(raw[i]);
  if (size > source.at_most()) {
    refuse(source.name(),
           fmt::format("announces a header of {} bytes, but {} follow. {}", size, source.at_most(), kNoSuchFile));
  }
  if (size > limit) {
    refuse(source.name(), fmt::format("has a header of {} bytes, above the limit of {}. Raise max_header_bytes if the "
                                      "file is to be trusted.",
                                      size, limit));
  }
  return size;
}

}  // namespace

SafeTensorsHeader read_safetensors_header(ByteSource& source, SafeTensorsLimits limits) {
  std::string json(read_header_size(source, limits.header_bytes), '\0');
  if (source.read(std::as_writable_bytes(std::span(json))) < json.size()) {
    refuse(source.name(), "ends within its header. Was it changed while it was read?");
  }
  SafeTensorsHeader header = parse_safetensors_header(source.name(), json);
  if (header.data_bytes != source.at_most()) {
    refuse(source.name(),
           fmt::format("holds {} bytes of data, where its header describes {}. {}; fetch it again.", source.at_most(),
                       header.data_bytes,
                       source.at_most() < header.data_bytes ? "It is cut short" : "Bytes were appended"));
  }
  if (header.data_bytes > limits.data_bytes) {
    refuse(source.name(), fmt::format("holds {} bytes of data, above the limit of {}. Raise max_bytes if that is what "
                                      "it should hold.",
                                      header.data_bytes, limits.data_bytes));
  }
  return header;
}

void read_safetensors_data(ByteSource& source, const SafeTensorsHeader& header,
                           const std::function<std::span<std::byte>(const SafeTensorsEntry&)>& place) {
  for (const SafeTensorsEntry& entry : header.entries) {
    const std::span<std::byte> bytes = place(entry);
    if (source.read(bytes) < bytes.size()) {
      refuse(source.name(), fmt::format("ends within tensor {}. Was it changed while it was read?", shown(entry.name)));
    }
    if (entry.dtype != comm::DType::kBool) continue;
    if (const std::size_t bad = first_bad_bool(bytes); bad < bytes.size()) {
      refuse(source.name(), fmt::format("element {} of the bools of tensor {} is {}, neither 0 nor 1. The file is "
                                        "damaged, or its writer is faulty: fetch or write it again.",
                                        bad, shown(entry.name), std::to_integer<int>(bytes[bad])));
    }
  }
  std::array<std::byte, 1> extra = {};
  if (source.read(extra) != 0) {
    refuse(source.name(), "goes on after its data. Was it changed while it was read?");
  }
}

}  // namespace brigade::data
