// Reductions for arguments that are known to be right, as the collectives call them.
#pragma once

#include <cstddef>
#include <span>

#include "brigade/comm/dtype.h"
#include "brigade/comm/group.h"
#include "comm/copy.h"

namespace brigade::comm {

// As reduce(), without its checks, of a range of the reduction of `inputs`, in whole elements, written to that range of every
// one of `outs`, which is one of the inputs exactly or overlaps none. Nothing outside the range is read or written, so that
// several threads may share one reduction.
void reduce_range(Reduction reduction, DType dtype, std::span<const std::span<const std::byte>> inputs,
                  std::span<const std::span<std::byte>> outs, Range range, Stores stores) noexcept;

// The arguments of the kernels behind both, where min and max have no divisor and dtypes are those that other ones are not
// made of: neither bool nor complex.
struct ReduceTask {
  Reduction reduction;
  DType dtype;
  std::span<const std::span<const std::byte>> inputs;
  struct Outputs {
    std::span<const std::span<std::byte>> spans;
    Stores stores;
  } outs;
  Range range;
};

// Streaming stores are not complete on return.
void reduce_vectorised(const ReduceTask& task) noexcept;

}  // namespace brigade::comm
