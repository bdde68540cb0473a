// From tensors to the pieces that the communication core moves.
#pragma once

#include <ATen/core/Tensor.h>

#include <source_location>
#include <vector>

#include "brigade/comm/group.h"
#include "brigade/runtime/axis.h"

namespace brigade::lax::detail {

// Throws InvalidArgument for types that comm does not know, such as quantized ones.
comm::DType dtype_of(at::ScalarType type);

// The dtype in which a tensor is reduced: itself where the kernels take it, else a wider one that loses nothing.
at::ScalarType reduced_as(at::ScalarType type);

// Contiguous CPU data of `tensor`, resolved of lazy conjugation, without its graph.
// Throws InvalidArgument, naming the collective, for other devices and layouts.
at::Tensor plain(const at::Tensor& tensor, std::string_view collective, const AxisPlace& place,
                 std::source_location site);

// Whether `tensor` is the only way to its memory, so that a result may take its place. Memory that libtorch did not
// allocate (from_blob) is somebody else's, and not resizable.
bool is_ours_alone(const at::Tensor& tensor);

// `out` receives what arrives for `in`. Both are plain and stay alive during the operation. `original` is what `in` was made
// of, so that devices whose dtypes differ do not meet in one that they were all converted to.
comm::Piece piece(const at::Tensor& in, const at::Tensor& out, const at::Tensor& original);

}  // namespace brigade::lax::detail
