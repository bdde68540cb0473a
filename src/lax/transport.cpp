#include "transport.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include "brigade/base/error.h"

namespace brigade::lax::detail {

std::optional<comm::DType> dtype_of(at::ScalarType type) noexcept {
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
      return {};
  }
}

namespace {

// Why a tensor cannot travel; empty when it can.
std::string obstacle(const at::Tensor& tensor) {
  if (!tensor.device().is_cpu()) {
    return fmt::format("takes CPU tensors, and this one is on {}: move it with .cpu()", tensor.device().str());
  }
  if (tensor.layout() != at::kStrided) {
    return fmt::format("takes dense tensors, and this one is {}: convert it with .to_dense()",
                       c10::str(tensor.layout()));
  }
  if (!dtype_of(tensor.scalar_type())) {
    return fmt::format("does not take tensors of dtype {}: convert them with {}", c10::toString(tensor.scalar_type()),
                       tensor.is_quantized() ? ".dequantize()" : ".to(torch::kComplexFloat)");
  }
  return {};
}

}  // namespace

void require_transportable(const Invocation& call, const Tensors& leaves) {
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    if (!leaves[i].defined()) {
      throw TreeError(fmt::format("{} of an undefined tensor: give it a value first", call.name), call.context(i));
    }
    if (const std::string reason = obstacle(leaves[i]); !reason.empty()) {
      throw InvalidArgument(fmt::format("{} {}", call.name, reason), call.context(i));
    }
  }
}

at::Tensor plain(const Invocation& call, const at::Tensor& tensor) {
  // The usual case, at the price of a few branches instead of a few dispatches.
  if (tensor.is_cpu() && tensor.layout() == at::kStrided && !tensor.requires_grad() && tensor.is_contiguous() &&
      !tensor.is_conj() && !tensor.is_neg() && dtype_of(tensor.scalar_type())) {
    return tensor;
  }
  if (const std::string reason = obstacle(tensor); !reason.empty()) {
    throw InvalidArgument(fmt::format("{} {}", call.name, reason), call.context());
  }
  return tensor.detach().resolve_conj().resolve_neg().contiguous();
}

Tensors plain(const Invocation& call, const Tensors& tensors) {
  Tensors results;
  results.reserve(tensors.size());
  for (const at::Tensor& tensor : tensors) results.push_back(plain(call, tensor));
  return results;
}

comm::Piece piece(const at::Tensor& in, const at::Tensor& out, const at::Tensor& original) {
  const bool converted = in.scalar_type() != original.scalar_type();
  return {.dtype = dtype_of(in.scalar_type()).value(),
          .in = {static_cast<const std::byte*>(in.data_ptr()), in.nbytes()},
          .out = {static_cast<std::byte*>(out.data_ptr()), out.nbytes()},
          .shape = {original.sizes().data(), original.sizes().size()},
          .origin = converted ? std::string_view(c10::toString(original.scalar_type())) : std::string_view()};
}

void throw_at(const CollectiveMismatch& error, std::string argument) {
  ErrorContext context = error.context();
  context.argument = std::move(argument);
  throw CollectiveMismatch(error.message(), std::move(context), error.piece());
}

void meet(const Invocation& call, const comm::Call& how, std::string_view tag) {
  try {
    call.group().run(how, {.tag = tag, .site = call.site});
  } catch (const CollectiveMismatch& error) {
    if (!error.piece() || !call.path_of) throw;
    throw_at(error, call.path_of(*error.piece()));
  }
}

Tensors move(const Invocation& call, comm::Call how, const Tensors& inputs, const Tensors& originals,
             std::string_view tag) {
  Tensors results;
  std::vector<comm::Piece> pieces;
  results.reserve(inputs.size());
  pieces.reserve(inputs.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    at::DimVector sizes(inputs[i].sizes());
    if (how.operation == comm::Operation::kAllGather) sizes.insert(sizes.begin(), call.size());
    results.push_back(at::empty(sizes, inputs[i].options()));
    pieces.push_back(piece(inputs[i], results[i], originals[i]));
  }
  how.pieces = pieces;
  meet(call, how, tag);
  return results;
}

}  // namespace brigade::lax::detail
