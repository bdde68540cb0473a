// Any bytes at all either are an IDX array that fits together or end in a DataError that names them.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <numeric>
#include <span>
#include <string_view>

#include "brigade/base/error.h"
#include "data/byte_source.h"
#include "data/gzip_source.h"
#include "data/idx_parser.h"

namespace {

using namespace brigade;
using namespace brigade::data;

constexpr std::uint64_t kMaxBytes = 1 << 20;

void require(bool condition) {
  if (!condition) std::abort();
}

void parse(ByteSource& source) {
  try {
    const IdxArray array = parse_idx(source, kMaxBytes);
    require(!array.sizes.empty() && array.sizes.size() <= kIdxMaxDimensions);
    require(*std::min_element(array.sizes.begin(), array.sizes.end()) > 0);
    require(std::accumulate(array.sizes.begin(), array.sizes.end(), std::int64_t{1}, std::multiplies{}) ==
            static_cast<std::int64_t>(array.bytes.size()));
    require(array.bytes.size() <= kMaxBytes);
  } catch (const DataError& error) {
    require(std::string_view(error.what()).starts_with("input: "));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span bytes(reinterpret_cast<const std::byte*>(data), size);
  if (size >= 2 && is_gzip(bytes.first<2>())) {
    GzipSource source(std::make_unique<MemorySource>("input", bytes));
    parse(source);
  } else {
    MemorySource source("input", bytes);
    parse(source);
  }
  return 0;
}
