#include "data/read_all.h"

#include <fmt/format.h>

#include <algorithm>

#include "data/errors.h"

namespace brigade::data {

void read_all(ByteSource& source, std::uint64_t max_bytes, std::vector<std::byte>& bytes) {
  constexpr std::size_t kFirstChunk = std::size_t{1} << 20;
  // Asking for one byte more than may come tells whether it would.
  while (true) {
    const std::size_t start = bytes.size();
    const std::uint64_t wanted = std::min<std::uint64_t>(std::max(start, kFirstChunk), source.at_most());
    const auto chunk = static_cast<std::size_t>(std::min<std::uint64_t>(wanted, max_bytes - start) + 1);
    bytes.resize(start + chunk);
    const std::size_t count = source.read(std::span(bytes).subspan(start));
    bytes.resize(start + count);
    if (bytes.size() > max_bytes) {
      refuse(source.name(), fmt::format("exceeds the limit of {} bytes. Raise max_bytes if it should.", max_bytes));
    }
    if (count < chunk) return;
  }
}

}  // namespace brigade::data
