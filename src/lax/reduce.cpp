// psum, pmax and pmin.
#include "brigade/lax/reduce.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <limits>

#include "brigade/base/error.h"
#include "linear_node.h"
#include "reducer.h"

namespace brigade::lax::detail {
namespace {

at::ScalarType same_type(at::ScalarType type) { return type; }

Tensors extreme(const Invocation& call, comm::ReduceOp op, const Tensors& tensors) {
  const bool recorded = needs_recording(tensors);
  Tensors results = all_reduce(call, {.op = op}, tensors, call.tag(recorded), same_type);
  if (recorded) {
    record_linear(call, tensors, results, [call = call.in_backward()](const Tensors&) -> Tensors {
      throw InvalidArgument(fmt::format("{} has no gradient: detach its argument, or use psum or pmean", call.name),
                            call.context());
    });
  }
  return results;
}

// The lowest rank along the axis among those that hold the extreme.
Tensors argument_of_extreme(const Invocation& call, comm::ReduceOp op, const Tensors& tensors) {
  Tensors values, candidates;
  for (const at::Tensor& tensor : tensors) values.push_back(tensor.detach());  // a second handle keeps their memory
  const Tensors extremes = all_reduce(call, {.op = op}, values, call.tag(false), same_type);
  const auto nobody = std::numeric_limits<std::int32_t>::max();
  for (std::size_t i = 0; i < values.size(); ++i) {
    const at::Tensor held = extremes[i].eq(values[i]).logical_or(extremes[i].isnan().logical_and(values[i].isnan()));
    candidates.push_back(at::full(held.sizes(), nobody, at::kInt).masked_fill_(held, call.axis_index));
  }
  return all_reduce(call, {.op = comm::ReduceOp::kMin}, candidates, call.tag(false, "index"), same_type);
}

}  // namespace

Tensors psum(const Invocation& call, Tensors tensors) {
  const bool recorded = needs_recording(tensors);
  Tensors results = all_reduce(call, {}, tensors, call.tag(recorded), type_of_sum);
  if (recorded) {
    record_linear(call, tensors, results,
                  [call = call.in_backward()](Tensors cotangents) { return psum(call, std::move(cotangents)); });
  }
  return results;
}

Tensors pmax(const Invocation& call, Tensors tensors) { return extreme(call, comm::ReduceOp::kMax, tensors); }

Tensors pmin(const Invocation& call, Tensors tensors) { return extreme(call, comm::ReduceOp::kMin, tensors); }

Tensors pargmax(const Invocation& call, Tensors tensors) {
  return argument_of_extreme(call, comm::ReduceOp::kMax, tensors);
}

Tensors pargmin(const Invocation& call, Tensors tensors) {
  return argument_of_extreme(call, comm::ReduceOp::kMin, tensors);
}

}  // namespace brigade::lax::detail
