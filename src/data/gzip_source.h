// The bytes inside a gzip stream (RFC 1952), unpacked as they are asked for.
#pragma once

#include <zlib.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "data/byte_source.h"

namespace brigade::data {

bool is_gzip(std::span<const std::byte, 2> start) noexcept;

// Unpacks into the caller's buffer only, so a stream that unpacks to far more than it weighs costs nothing beyond what
// is read of it. Checksums are verified when the end is reached. read() throws DataError on a damaged or cut stream and
// on bytes behind it.
class GzipSource final : public ByteSource {
 public:
  explicit GzipSource(std::unique_ptr<ByteSource> packed);
  ~GzipSource() override;

  std::size_t read(std::span<std::byte> out) override;
  std::uint64_t at_most() const override;

 private:
  void refill();

  std::unique_ptr<ByteSource> packed_;
  z_stream stream_ = {};
  bool between_members_ = false;  // a whole member has been unpacked, and nothing of another
  std::array<std::byte, 65536> buffer_;
};

}  // namespace brigade::data
