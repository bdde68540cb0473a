// Reductions for arguments that are known to be right, as the collectives call them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "brigade/comm/dtype.h"
#include "brigade/comm/group.h"
#include "comm/copy.h"

namespace brigade::comm {

// The inputs of a reduction with the tree over them.
class Addends {
 public:
  // Without leaves, each input is one.
  Addends(std::span<const std::span<const std::byte>> inputs, std::span<const std::int32_t> leaves = {}) noexcept
      : inputs_(inputs), leaves_(leaves) {}

  std::size_t size() const noexcept { return inputs_.size(); }
  std::span<const std::byte> operator[](std::size_t i) const noexcept { return inputs_[i]; }
  Addends first(std::size_t count) const noexcept {
    return {inputs_.first(count), leaves_.first(std::min(count, leaves_.size()))};
  }
  Addends from(std::size_t begin) const noexcept {
    return {inputs_.subspan(begin), leaves_.subspan(std::min(begin, leaves_.size()))};
  }

  // How many inputs are left of where the tree over them divides; 0 when an input reaches across. There are two or more.
  std::size_t left() const noexcept;

  // Whether every input is a whole subtree.
  bool are_subtrees() const noexcept;

 private:
  std::span<const std::span<const std::byte>> inputs_;
  std::span<const std::int32_t> leaves_;
};

// As reduce(), without its checks, of a range of the reduction of `inputs`, in whole elements, written to that range of every
// one of `outs`, which is one of the inputs exactly or overlaps none. Nothing outside the range is read or written, so that
// several threads may share one reduction.
void reduce_range(Reduction reduction, DType dtype, Addends inputs, std::span<const std::span<std::byte>> outs,
                  Range range, Stores stores) noexcept;

// The arguments of the kernels behind both, where min and max have no divisor and dtypes are those that other ones are not
// made of: neither bool nor complex.
struct ReduceTask {
  Reduction reduction;
  DType dtype;
  Addends inputs;
  struct Outputs {
    std::span<const std::span<std::byte>> spans;
    Stores stores;
  } outs;
  Range range;
};

// Streaming stores are not complete on return.
void reduce_vectorised(const ReduceTask& task) noexcept;

}  // namespace brigade::comm
