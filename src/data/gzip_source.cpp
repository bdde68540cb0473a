#include "data/gzip_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <new>

#include "data/errors.h"

namespace brigade::data {
namespace {

// 15 is the largest window; 16 more asks zlib for gzip's framing instead of its own.
constexpr int kGzipWindow = 15 + 16;

// Deflate cannot do better (zlib's technical notes). The slack covers what inflate holds back between two calls.
constexpr std::uint64_t kMaxRatio = 1032;
constexpr std::uint64_t kSlack = 65536;

}  // namespace

bool is_gzip(std::span<const std::byte, 2> start) noexcept {
  return start[0] == std::byte{0x1f} && start[1] == std::byte{0x8b};
}

GzipSource::GzipSource(std::unique_ptr<ByteSource> packed) : ByteSource(packed->name()), packed_(std::move(packed)) {
  if (inflateInit2(&stream_, kGzipWindow) != Z_OK) throw std::bad_alloc();
}

GzipSource::~GzipSource() { inflateEnd(&stream_); }

void GzipSource::refill() {
  stream_.next_in = reinterpret_cast<Bytef*>(buffer_.data());
  stream_.avail_in = static_cast<uInt>(packed_->read(buffer_));
}

std::size_t GzipSource::read(std::span<std::byte> out) {
  std::size_t filled = 0;
  while (filled < out.size()) {
    if (stream_.avail_in == 0) refill();
    if (between_members_) {
      if (stream_.avail_in == 0) break;
      // A gzip file may be several members one after another, which unpack to their concatenation.
      inflateReset(&stream_);
      between_members_ = false;
    }
    const std::size_t room = std::min<std::size_t>(out.size() - filled, std::numeric_limits<uInt>::max());
    stream_.next_out = reinterpret_cast<Bytef*>(out.data() + filled);
    stream_.avail_out = static_cast<uInt>(room);
    const bool at_end = stream_.avail_in == 0;
    const int result = inflate(&stream_, Z_NO_FLUSH);
    filled += room - stream_.avail_out;
    if (result == Z_STREAM_END) {
      between_members_ = true;
    } else if (at_end && result == Z_BUF_ERROR) {
      refuse(name(), "the gzip stream is cut short. Fetch the file again.");
    } else if (result != Z_OK) {
      refuse(name(), fmt::format("the gzip stream is damaged or followed by other bytes ({}). Fetch the file again.",
                                 stream_.msg != nullptr ? stream_.msg : zError(result)));
    }
  }
  return filled;
}

std::uint64_t GzipSource::at_most() const {
  const std::uint64_t packed = packed_->at_most() + stream_.avail_in;
  constexpr std::uint64_t kLargest = std::numeric_limits<std::uint64_t>::max();
  return packed > (kLargest - kSlack) / kMaxRatio ? kLargest : packed * kMaxRatio + kSlack;
}

}  // namespace brigade::data
