#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <tuple>

#include "brigade/base/error.h"
#include "data/elements.h"
#include "data/errors.h"
#include "data/safetensors_format.h"

namespace brigade::data {
namespace {

// Where the reference sorts a dtype among those of its size.
int rank_in_reference(comm::DType dtype) {
  switch (dtype) {
    case comm::DType::kInt64:
    case comm::DType::kFloat32:
    case comm::DType::kBFloat16:
    case comm::DType::kInt8:
      return 0;
    case comm::DType::kFloat64:
    case comm::DType::kInt32:
    case comm::DType::kFloat16:
    case comm::DType::kUint8:
      return 1;
    default:  // int16 and bool
      return 2;
  }
}

std::string quoted(const std::string& text) {
  try {
    return nlohmann::json(text).dump();
  } catch (const nlohmann::json::type_error&) {
    throw InvalidArgument(fmt::format("safetensors: {} is no UTF-8. Names and metadata must be.", shown(text)));
  }
}

[[noreturn]] void unwritable(const SafeTensorsEntry& entry, std::string_view problem) {
  throw InvalidArgument(fmt::format("safetensors: tensor {} cannot be written: {}", shown(entry.name), problem));
}

std::uint64_t checked_bytes(const SafeTensorsEntry& entry) {
  if (const auto problem = safetensors_name_problem(entry.name)) {
    unwritable(entry, fmt::format("its name {}. Give it another.", *problem));
  }
  if (!safetensors_name(entry.dtype)) {
    unwritable(entry, fmt::format("the format has no {}. Convert it, a complex tensor with torch::view_as_real.",
                                  name_of(entry.dtype)));
  }
  if (entry.sizes.size() > kMaxRank) {
    unwritable(entry,
               fmt::format("it has {} dimensions, where {} can be read. Reshape it.", entry.sizes.size(), kMaxRank));
  }
  const auto bytes = byte_count(entry.dtype, entry.sizes);
  if (!bytes) unwritable(entry, fmt::format("its shape [{}] is too large.", fmt::join(entry.sizes, ", ")));
  return *bytes;
}

void lay_out(std::vector<SafeTensorsEntry>& entries) {
  std::sort(entries.begin(), entries.end(), [](const SafeTensorsEntry& a, const SafeTensorsEntry& b) {
    const auto key = [](const SafeTensorsEntry& e) {
      return std::tuple<std::int64_t, int, std::string_view>(-static_cast<std::int64_t>(size_of(e.dtype)),
                                                             rank_in_reference(e.dtype), e.name);
    };
    return key(a) < key(b);
  });
  std::uint64_t end = 0;
  for (SafeTensorsEntry& entry : entries) {
    entry.begin = end;
    if (__builtin_add_overflow(end, checked_bytes(entry), &end)) unwritable(entry, "the file would be too large.");
    entry.end = end;
  }
}

// With the 8 bytes of its size in front, and padded to a multiple of 8.
std::string make_header(const std::vector<SafeTensorsEntry>& entries,
                        const std::map<std::string, std::string>& metadata) {
  std::string text(8, '\0');
  text += '{';
  std::string_view separator;
  if (!metadata.empty()) {
    text += fmt::format("\"{}\":{{", kSafeTensorsMetadata);
    for (const auto& [key, value] : metadata) {
      text += fmt::format("{}{}:{}", separator, quoted(key), quoted(value));
      separator = ",";
    }
    text += '}';
  }
  for (const SafeTensorsEntry& e : entries) {
    text += fmt::format(R"({}{}:{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})", separator, quoted(e.name),
                        *safetensors_name(e.dtype), fmt::join(e.sizes, ","), e.begin, e.end);
    separator = ",";
  }
  text += '}';
  text.append((8 - text.size() % 8) % 8, ' ');
  for (std::size_t i = 0; i < 8; ++i) text[i] = static_cast<char>((text.size() - 8) >> (8 * i) & 0xFF);
  return text;
}

}  // namespace

void write_entries(std::vector<SafeTensorsEntry> entries, const std::map<std::string, std::string>& metadata,
                   const std::function<std::span<const std::byte>(const SafeTensorsEntry&)>& bytes_of,
                   const ByteSink& sink) {
  if (metadata.size() > kSafeTensorsMaxMetadata) {
    throw InvalidArgument(fmt::format("safetensors: {} entries of metadata, where {} can be read. Join some.",
                                      metadata.size(), kSafeTensorsMaxMetadata));
  }
  lay_out(entries);
  const std::string header = make_header(entries, metadata);
  if (header.size() - 8 > kSafeTensorsMaxHeader) {
    throw InvalidArgument(
        fmt::format("safetensors: the header would take {} bytes, where readers take {}. Write fewer "
                    "tensors to a file, or less metadata.",
                    header.size() - 8, kSafeTensorsMaxHeader));
  }
  sink(std::as_bytes(std::span(header)));
  for (const SafeTensorsEntry& entry : entries) {
    const std::span<const std::byte> bytes = bytes_of(entry);
    if (entry.dtype == comm::DType::kBool && first_bad_bool(bytes) < bytes.size()) {
      unwritable(entry, "one of its bools is neither 0 nor 1. Compare it with zero to make it sound.");
    }
    sink(bytes);
  }
}

}  // namespace brigade::data
