#include "reducer.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include "brigade/base/error.h"
#include "brigade/lax/ownership.h"

namespace brigade::lax::detail {
namespace {

// The dtype in which `type` travels: itself where the group reduces it, else a wider one that loses nothing. Complex
// numbers go as pairs of real ones then.
at::ScalarType carrier_of(at::ScalarType type, comm::Reduction reduction, const comm::Capabilities& capabilities) {
  if (capabilities.takes(reduction, dtype_of(type).value())) return type;
  switch (type) {
    case at::kBool:
    case at::kByte:
    case at::kChar:
    case at::kShort:
      return at::kInt;  // the low bits of a sum are the same
    case at::kHalf:
    case at::kBFloat16:
      return at::kFloat;
    case at::kComplexFloat:
    case at::kComplexDouble:
      return c10::toRealValueType(type);
    default:
      return type;
  }
}

}  // namespace

Reducer::Reducer(const Invocation& call, comm::Reduction reduction, std::size_t count)
    : call_(call), reduction_(reduction) {
  travelling_.reserve(count);
  pieces_.reserve(count);
}

void Reducer::add(const at::Tensor& data, at::IntArrayRef sizes, at::ScalarType type, const at::Tensor& original,
                  const at::Tensor& home) {
  if (at::isComplexType(type) && reduction_.op != comm::ReduceOp::kSum) {
    throw InvalidArgument(fmt::format("{} of complex numbers, which have no order: reduce .abs() instead", call_.name),
                          call_.context(travelling_.size()));
  }
  const at::ScalarType carrier = carrier_of(type, reduction_, call_.group().capabilities());
  const bool pairs = at::isComplexType(type) && !at::isComplexType(carrier);
  const auto as_carried = [pairs](const at::Tensor& tensor) { return pairs ? at::view_as_real(tensor) : tensor; };
  const at::Tensor own = data.scalar_type() == carrier || pairs ? data : data.to(carrier);
  const bool at_home = home.defined() && home.numel() > 0 && own.data_ptr() == home.data_ptr();
  // Whoever lent it to the body can tell that its values are gone.
  if (at_home && !home.is_inference()) home.unsafeGetTensorImpl()->bump_version();
  const Travelling& added =
      travelling_.emplace_back(Travelling{as_carried(own), at_home ? home : at::empty(sizes, own.options()), type});
  pieces_.push_back(piece(added.in, as_carried(added.out), original));
}

void Reducer::add(const at::Tensor& tensor, at::ScalarType type) {
  const at::Tensor home = is_held_by(1, tensor) ? tensor : at::Tensor();
  add(plain(call_, tensor), tensor.sizes(), type, tensor, home);
}

Tensors Reducer::run(comm::Operation operation, std::string_view tag) {
  meet(call_, {.operation = operation, .reduction = reduction_, .pieces = pieces_}, tag);
  return results();
}

comm::Pending Reducer::start(comm::Operation operation, std::string_view tag) {
  return call_.group().start({.operation = operation, .reduction = reduction_, .pieces = pieces_},
                             {.tag = tag, .site = call_.site});
}

Tensors Reducer::results() {
  Tensors results;
  results.reserve(travelling_.size());
  for (Travelling& one : travelling_) {
    results.push_back(one.out.scalar_type() == one.type ? std::move(one.out) : one.out.to(one.type));
  }
  travelling_.clear();
  return results;
}

Tensors all_reduce(const Invocation& call, comm::Reduction reduction, const Tensors& tensors, std::string_view tag,
                   c10::function_ref<at::ScalarType(at::ScalarType)> type_of) {
  Reducer reducer(call, reduction, tensors.size());
  for (const at::Tensor& tensor : tensors) reducer.add(tensor, type_of(tensor.scalar_type()));
  return reducer.run(comm::Operation::kAllReduce, tag);
}

}  // namespace brigade::lax::detail
