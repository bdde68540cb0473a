// From tensors to the pieces that the communication core moves.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <string_view>
#include <vector>

#include "brigade/comm/group.h"
#include "brigade/lax/leaves.h"

namespace brigade::lax::detail {

// None for types that comm does not know, such as quantized ones.
std::optional<comm::DType> dtype_of(at::ScalarType type) noexcept;

// Contiguous CPU data of `tensor`, resolved of lazy conjugation and negation, without its graph. Itself, if it is all that.
// Throws InvalidArgument for devices, layouts and dtypes that cannot travel, which only gradients can still bring.
at::Tensor plain(const Invocation& call, const at::Tensor& tensor);

Tensors plain(const Invocation& call, const Tensors& tensors);

// `out` receives what arrives for `in`. Both are plain and stay alive during the operation. `original` is what `in` was made
// of, so that devices whose dtypes differ do not meet in one that they were all converted to; its shape is compared.
comm::Piece piece(const at::Tensor& in, const at::Tensor& out, const at::Tensor& original);

// The same error, of the piece that is `argument` to whoever called.
[[noreturn]] void throw_at(const CollectiveMismatch& error, std::string argument);

// Runs `how`, whose pieces are those of the leaves in order. Where devices differ in one of them, CollectiveMismatch
// names it.
void meet(const Invocation& call, const comm::Call& how, std::string_view tag);

// Moves plain `inputs`, made of `originals` one by one, to new tensors of the same shapes and dtypes; those of an
// all_gather begin with a dimension of devices. `how` is the call without its pieces.
Tensors move(const Invocation& call, comm::Call how, const Tensors& inputs, const Tensors& originals,
             std::string_view tag);

}  // namespace brigade::lax::detail
