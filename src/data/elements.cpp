#include "data/elements.h"

#include <algorithm>
#include <bit>

namespace brigade::data {

static_assert(std::endian::native == std::endian::little, "elements are read into memory as files hold them");

std::optional<std::uint64_t> byte_count(comm::DType dtype, std::span<const std::int64_t> sizes) noexcept {
  // A dimension of zero empties the tensor, but the strides of the others are computed all the same.
  auto bytes = static_cast<std::int64_t>(size_of(dtype));
  bool empty = false;
  for (const std::int64_t size : sizes) {
    empty = empty || size == 0;
    if (size < 0 || __builtin_mul_overflow(bytes, std::max<std::int64_t>(size, 1), &bytes)) return std::nullopt;
  }
  return empty ? 0 : static_cast<std::uint64_t>(bytes);
}

std::size_t first_bad_bool(std::span<const std::byte> bytes) noexcept {
  const auto found = std::find_if(bytes.begin(), bytes.end(), [](std::byte byte) { return byte > std::byte{1}; });
  return static_cast<std::size_t>(found - bytes.begin());
}

void swap_byte_order(std::span<std::byte> bytes, std::size_t size) noexcept {
  for (std::size_t i = 0; i + size <= bytes.size(); i += size) std::ranges::reverse(bytes.subspan(i, size));
}

}  // namespace brigade::data
