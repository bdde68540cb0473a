// Tensors on their way through one reduction: in a dtype that the group reduces on the way, back in their own afterwards.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "transport.h"

namespace brigade::lax::detail {

class Reducer {
 public:
  Reducer(const Invocation& call, comm::Reduction reduction, std::size_t count);

  // Adds plain data, from which a result of shape `sizes` and dtype `type` will come. `original` is the tensor that it was
  // made of, and stays alive. When `data` travels as it is and lies in the memory of `home`, the result does, too.
  // Throws InvalidArgument for the min or max of complex numbers.
  void add(const at::Tensor& data, at::IntArrayRef sizes, at::ScalarType type, const at::Tensor& original,
           const at::Tensor& home = {});

  // Adds a whole tensor, whose result takes its memory when nobody else holds it.
  void add(const at::Tensor& tensor, at::ScalarType type);

  // One meeting. Results are in the order of add(); they are contiguous, have no graph, and are no views.
  Tensors run(comm::Operation operation, std::string_view tag);

  // The same in two steps. What was added stays alive until start() returns, the Reducer and `tag` until what that returns
  // has ended.
  comm::Pending start(comm::Operation operation, std::string_view tag);
  Tensors results();

 private:
  struct Travelling {
    at::Tensor in, out;
    at::ScalarType type;  // of the result
  };

  const Invocation& call_;
  comm::Reduction reduction_;
  std::vector<Travelling> travelling_;
  std::vector<comm::Piece> pieces_;
};

// The sum, min or max of each tensor as dtype `type_of(its dtype)`. Results take the memory of tensors that nobody else
// holds.
Tensors all_reduce(const Invocation& call, comm::Reduction reduction, const Tensors& tensors, std::string_view tag,
                   c10::function_ref<at::ScalarType(at::ScalarType)> type_of);

// The dtype of a sum: bool counts.
inline at::ScalarType type_of_sum(at::ScalarType type) { return type == at::kBool ? at::kInt : type; }

}  // namespace brigade::lax::detail
