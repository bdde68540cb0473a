#include "transport.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include "brigade/base/error.h"

namespace brigade::lax::detail {

comm::DType dtype_of(at::ScalarType type) {
  using comm::DType;
  switch (type) {
    case at::kBool:
      return DType::kBool;
    case at::kByte:
      return DType::kUint8;
    case at::kChar:
      return DType::kInt8;
    case at::kShort:
      return DType::kInt16;
    case at::kInt:
      return DType::kInt32;
    case at::kLong:
      return DType::kInt64;
    case at::kHalf:
      return DType::kFloat16;
    case at::kBFloat16:
      return DType::kBFloat16;
    case at::kFloat:
      return DType::kFloat32;
    case at::kDouble:
      return DType::kFloat64;
    case at::kComplexFloat:
      return DType::kComplex64;
    case at::kComplexDouble:
      return DType::kComplex128;
    default:
      throw InvalidArgument(fmt::format("tensors of dtype {} cannot travel: convert them first", c10::toString(type)));
  }
}

at::ScalarType reduced_as(at::ScalarType type) {
  switch (type) {
    case at::kBool:
    case at::kByte:
    case at::kChar:
    case at::kShort:
      return at::kInt;  // the low bits of a sum are the same
    case at::kHalf:
    case at::kBFloat16:
      return at::kFloat;
    default:
      return type;
  }
}

at::Tensor plain(const at::Tensor& tensor, std::string_view collective, const AxisPlace& place,
                 std::source_location site) {
  const ErrorContext context{.axis = place.axis->name(), .device = place.position, .site = site};
  if (!tensor.device().is_cpu()) {
    throw InvalidArgument(fmt::format("{} takes CPU tensors, and this one is on {}: move it with .cpu()", collective,
                                      tensor.device().str()),
                          context);
  }
  if (tensor.layout() != at::kStrided) {
    throw InvalidArgument(fmt::format("{} takes dense tensors, and this one is {}: convert it with .to_dense()",
                                      collective, c10::str(tensor.layout())),
                          context);
  }
  // The usual case, at the price of a few branches instead of a few dispatches.
  if (!tensor.requires_grad() && tensor.is_contiguous() && !tensor.is_conj() && !tensor.is_neg()) return tensor;
  const at::Tensor data = tensor.detach();
  return (data.is_complex() ? data.resolve_conj() : data.resolve_neg()).contiguous();
}

bool is_ours_alone(const at::Tensor& tensor) {
  return tensor.use_count() == 1 && tensor.has_storage() && tensor.storage().use_count() == 1 &&
         tensor.storage().resizable() && !tensor.requires_grad();
}

comm::Piece piece(const at::Tensor& in, const at::Tensor& out, const at::Tensor& original) {
  const bool converted = in.scalar_type() != original.scalar_type();
  return {.dtype = dtype_of(in.scalar_type()),
          .in = {static_cast<const std::byte*>(in.data_ptr()), in.nbytes()},
          .out = {static_cast<std::byte*>(out.data_ptr()), out.nbytes()},
          .shape = {in.sizes().data(), in.sizes().size()},
          .origin = converted ? std::string_view(c10::toString(original.scalar_type())) : std::string_view()};
}

}  // namespace brigade::lax::detail
