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

std::size_t size_of(DType dtype) noexcept;       // bytes per element
std::string_view name_of(DType dtype) noexcept;  // "float32", ...
bool is_reducible(DType dtype) noexcept;         // whether all_reduce and reduce_scatter take it

}  // namespace brigade::comm
