// What formats of tensors have in common: how many bytes a shape takes, sound bools, and the order of bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "brigade/comm/dtype.h"

namespace brigade::data {

// More dimensions than this are refused wherever they are read or written; torch's own limit.
inline constexpr std::size_t kMaxRank = 64;

// Bytes of a tensor; nothing when they, or its strides, cannot be counted in 63 bits.
std::optional<std::uint64_t> byte_count(comm::DType dtype, std::span<const std::int64_t> sizes) noexcept;

// Where `bytes`, a tensor of bools, first holds something else than 0 or 1; bytes.size() when nowhere.
std::size_t first_bad_bool(std::span<const std::byte> bytes) noexcept;

// Turns big-endian elements of `size` bytes each into little-endian ones, or back.
void swap_byte_order(std::span<std::byte> bytes, std::size_t size) noexcept;

}  // namespace brigade::data
