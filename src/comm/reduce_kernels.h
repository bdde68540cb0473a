// Reductions for arguments that are known to be right, as the collectives call them.
#pragma once

#include <cstddef>
#include <span>

#include "brigade/comm/dtype.h"
#include "brigade/comm/group.h"

namespace brigade::comm {

// As reduce(), without its checks.
void reduce_unchecked(Reduction reduction, DType dtype, std::span<const std::span<const std::byte>> inputs,
                      std::span<std::byte> out) noexcept;

// The same, with a divisor that the dtype can represent.
void reduce_vectorised(Reduction reduction, DType dtype, std::span<const std::span<const std::byte>> inputs,
                       std::span<std::byte> out) noexcept;

}  // namespace brigade::comm
