// Element types as the communication core knows them: a name and a size, free of torch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace brigade::comm {

enum class DType : std::uint8_t {
  kBool,
  kUint8,
  kInt8,
  kInt16,
  kInt32,
  kInt64,
  kFloat16,
  kBFloat16,
  kFloat32,
  kFloat64,
  kComplex64,
  kComplex128,
};

inline constexpr std::size_t kDTypeCount = 12;

std::size_t size_of(DType dtype) noexcept;       // bytes per element
std::string_view name_of(DType dtype) noexcept;  // "float32", ...

}  // namespace brigade::comm
