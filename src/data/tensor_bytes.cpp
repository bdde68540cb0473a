#include "data/tensor_bytes.h"

namespace brigade::data {

at::ScalarType scalar_type_of(comm::DType dtype) noexcept {
  switch (dtype) {
    case comm::DType::kBool:
      return at::kBool;
    case comm::DType::kUint8:
      return at::kByte;
    case comm::DType::kInt8:
      return at::kChar;
    case comm::DType::kInt16:
      return at::kShort;
    case comm::DType::kInt32:
      return at::kInt;
    case comm::DType::kInt64:
      return at::kLong;
    case comm::DType::kFloat16:
      return at::kHalf;
    case comm::DType::kBFloat16:
      return at::kBFloat16;
    case comm::DType::kFloat32:
      return at::kFloat;
    case comm::DType::kFloat64:
      return at::kDouble;
    case comm::DType::kComplex64:
      return at::kComplexFloat;
    case comm::DType::kComplex128:
      return at::kComplexDouble;
  }
  return at::ScalarType::Undefined;
}

std::optional<comm::DType> dtype_of(at::ScalarType type) noexcept {
  for (std::size_t i = 0; i < comm::kDTypeCount; ++i) {
    if (scalar_type_of(static_cast<comm::DType>(i)) == type) return static_cast<comm::DType>(i);
  }
  return std::nullopt;
}

std::span<std::byte> bytes_of(const torch::Tensor& tensor) {
  return {static_cast<std::byte*>(tensor.data_ptr()), tensor.nbytes()};
}

}  // namespace brigade::data
