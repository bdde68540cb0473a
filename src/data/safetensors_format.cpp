#include "data/safetensors_format.h"

#include <algorithm>
#include <array>

namespace brigade::data {
namespace {

struct Name {
  std::string_view name;
  comm::DType dtype;
};

constexpr std::array<Name, 10> kNames = {{
    {"BOOL", comm::DType::kBool},
    {"U8", comm::DType::kUint8},
    {"I8", comm::DType::kInt8},
    {"I16", comm::DType::kInt16},
    {"F16", comm::DType::kFloat16},
    {"BF16", comm::DType::kBFloat16},
    {"I32", comm::DType::kInt32},
    {"F32", comm::DType::kFloat32},
    {"F64", comm::DType::kFloat64},
    {"I64", comm::DType::kInt64},
}};

}  // namespace

std::optional<comm::DType> safetensors_dtype(std::string_view name) noexcept {
  const auto* found = std::find_if(kNames.begin(), kNames.end(), [name](const Name& n) { return n.name == name; });
  return found == kNames.end() ? std::nullopt : std::optional(found->dtype);
}

std::optional<std::string_view> safetensors_name(comm::DType dtype) noexcept {
  const auto* found = std::find_if(kNames.begin(), kNames.end(), [dtype](const Name& n) { return n.dtype == dtype; });
  return found == kNames.end() ? std::nullopt : std::optional(found->name);
}

std::optional<std::string_view> safetensors_name_problem(std::string_view name) noexcept {
  if (name.empty()) return "is empty";
  if (name == kSafeTensorsMetadata) return "is kept for the metadata";
  for (std::size_t i = 0; i < name.size(); ++i) {
    const auto byte = static_cast<unsigned char>(name[i]);
    // U+0080 to U+009F, which terminals obey as they do U+0000 to U+001F, are C2 80 to C2 9F in UTF-8.
    const bool second_half = byte == 0xC2 && i + 1 < name.size() && static_cast<unsigned char>(name[i + 1]) < 0xA0;
    if (byte < 0x20 || byte == 0x7F || second_half) return "has a control character";
  }
  return std::nullopt;
}

}  // namespace brigade::data
