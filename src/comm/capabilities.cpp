#include "brigade/comm/capabilities.h"

namespace brigade::comm {
namespace {

constexpr Capabilities of_kernels() {
  Capabilities capabilities = {.asynchronous = true};
  capabilities.operations.fill(true);
  const auto set = [&](DType dtype, Capabilities::Reductions reductions) {
    capabilities.reductions[static_cast<std::size_t>(dtype)] = reductions;
  };
  set(DType::kBool, {.order = true});
  for (const DType dtype : {DType::kUint8, DType::kInt8, DType::kInt16, DType::kInt32, DType::kInt64}) {
    set(dtype, {.sum = true, .order = true});
  }
  for (const DType dtype : {DType::kFloat16, DType::kBFloat16, DType::kFloat32, DType::kFloat64}) {
    set(dtype, {.sum = true, .order = true, .divisor = true});
  }
  for (const DType dtype : {DType::kComplex64, DType::kComplex128}) set(dtype, {.sum = true, .divisor = true});
  return capabilities;
}

}  // namespace

bool Capabilities::takes(Reduction reduction, DType dtype) const noexcept {
  const Reductions& reductions_of_dtype = of(dtype);
  if (reduction.divisor != 1.0 && !reductions_of_dtype.divisor) return false;
  return reduction.op == ReduceOp::kSum ? reductions_of_dtype.sum : reductions_of_dtype.order;
}

const Capabilities& kernel_capabilities() noexcept {
  static constexpr Capabilities kCapabilities = of_kernels();
  return kCapabilities;
}

}  // namespace brigade::comm
