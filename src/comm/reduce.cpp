#include "brigade/comm/reduce.h"

#include <hwy/cache_control.h>

#include <bit>
#include <numeric>

#include "comm/checks.h"
#include "comm/reduce_kernels.h"

namespace brigade::comm {
namespace {

// What an element is made of, as far as adding, ordering and dividing go. The smaller of two bools is their and, the larger
// their or.
DType parts_of(DType dtype) noexcept {
  switch (dtype) {
    case DType::kBool:
      return DType::kUint8;
    case DType::kComplex64:
      return DType::kFloat32;
    case DType::kComplex128:
      return DType::kFloat64;
    default:
      return dtype;
  }
}

}  // namespace

std::size_t Addends::left() const noexcept {
  if (leaves_.empty()) return std::bit_floor(inputs_.size() - 1);
  const auto total = static_cast<std::uint64_t>(std::accumulate(leaves_.begin(), leaves_.end(), std::int64_t{0}));
  const std::uint64_t border = std::bit_floor(total - 1);
  std::uint64_t before = 0;
  std::size_t count = 0;
  while (before < border) before += static_cast<std::uint64_t>(leaves_[count++]);
  return before == border ? count : 0;
}

bool Addends::are_subtrees() const noexcept {
  if (inputs_.size() == 1) return true;
  const std::size_t count = inputs_.empty() ? 0 : left();
  return count > 0 && first(count).are_subtrees() && from(count).are_subtrees();
}

void reduce(Reduction reduction, DType dtype, std::span<const std::span<const std::byte>> inputs,
            std::span<std::byte> out) {
  check_reduction(reduction, dtype);
  check_reduce_spans(dtype, inputs, out);
  reduce_range(reduction, dtype, {inputs}, {&out, 1}, {.begin = 0, .end = out.size()}, Stores::kCached);
}

void reduce_range(Reduction reduction, DType dtype, Addends inputs, std::span<const std::span<std::byte>> outs,
                  Range range, Stores stores) noexcept {
  // One value needs no combining and keeps its bits, a NaN's too.
  if (inputs.size() == 1 && reduction.divisor == 1.0) {
    for (const std::span<std::byte> out : outs) copy_bytes(part(inputs[0], range), part(out, range), stores);
    return;
  }
  ReduceTask task = {.reduction = reduction,
                     .dtype = parts_of(dtype),
                     .inputs = inputs,
                     .outs = {.spans = outs, .stores = stores},
                     .range = range};
  std::span<const std::byte> undivided;
  if (reduction.op != ReduceOp::kSum && reduction.divisor != 1.0) {
    reduce_vectorised({.reduction = {.op = reduction.op},
                       .dtype = task.dtype,
                       .inputs = inputs,
                       .outs = {.spans = outs.first(1), .stores = Stores::kCached},
                       .range = range});
    undivided = outs[0];
    task.inputs = {{&undivided, 1}};
    task.reduction.op = ReduceOp::kSum;
  }
  reduce_vectorised(task);
  if (stores == Stores::kStreaming) hwy::FlushStream();
}

}  // namespace brigade::comm
