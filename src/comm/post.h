// What one participant shows the others in one operation. Everything but the spans' contents lies in memory of the
// group, so a message about a participant can be built after it has left.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <source_location>
#include <string_view>
#include <vector>

#include "brigade/comm/group.h"

namespace brigade::comm {

inline constexpr std::size_t kCacheLine = 64;

// How far a participant is in an operation. A phase is 4 * sequence number + step, so phases only grow; sequence
// numbers start at 1 and a phase of 0 is that of no operation.
enum class Step : std::uint8_t {
  kArrived,    // its post is complete
  kMoving,     // it reads and writes other participants' spans
  kAbandoned,  // it saw that the group failed before it touched any
  kFinished,   // it will not touch them any more
};

constexpr std::uint64_t phase_of(std::uint64_t sequence, Step step) noexcept {
  return 4 * sequence + static_cast<std::uint64_t>(step);
}
constexpr std::uint64_t sequence_of(std::uint64_t phase) noexcept { return phase / 4; }

// A name of bounded length that needs no allocation.
class Tag {
 public:
  void assign(std::string_view text) noexcept {
    size_ = std::min(text.size(), text_.size());
    std::copy_n(text.data(), size_, text_.data());
  }
  std::string_view view() const noexcept { return {text_.data(), size_}; }

 private:
  std::array<char, 48> text_ = {};
  std::size_t size_ = 0;
};

struct Post {
  // Payloads up to this size are copied into the post. Others then never touch the participant's own memory, so one
  // meeting is enough.
  static constexpr std::size_t kPayloadBytes = 1024;

  // The first line is all that participants read of each other when they pass a few bytes.
  alignas(kCacheLine) std::atomic<std::uint64_t> phase{0};
  std::uint64_t fingerprint = 0;
  std::array<std::byte, kCacheLine - 16> short_payload;

  alignas(kCacheLine) std::array<std::byte, kPayloadBytes> long_payload;

  // Read where spans are moved directly, and by messages.
  alignas(kCacheLine) std::vector<Piece> pieces;
  std::vector<std::int64_t> shapes;
  std::vector<RankPair> pairs;
  Operation operation = Operation::kBarrier;
  Reduction reduction = {};
  int root = 0;
  std::source_location site = {};
  Tag tag;

  // Everything except phase and payload. May throw bad_alloc, before anyone sees the post.
  void describe(const Call& call, const CallOptions& options) {
    pieces.assign(call.pieces.begin(), call.pieces.end());
    keep_shapes();
    pairs.assign(call.pairs.begin(), call.pairs.end());
    operation = call.operation;
    reduction = call.reduction;
    root = call.root;
    site = options.site;
    tag.assign(options.tag);
    fingerprint = comm::fingerprint(call, options.tag);
  }

  // Shapes are the participant's own memory too; messages need them when it has left.
  void keep_shapes() {
    shapes.clear();
    for (const Piece& piece : pieces) shapes.insert(shapes.end(), piece.shape.begin(), piece.shape.end());
    const std::int64_t* next = shapes.data();
    for (Piece& piece : pieces) {
      if (piece.shape.empty()) continue;
      piece.shape = {next, piece.shape.size()};
      next += piece.shape.size();
    }
  }

  std::byte* payload(std::size_t bytes) noexcept {
    return bytes <= short_payload.size() ? short_payload.data() : long_payload.data();
  }
  const std::byte* payload(std::size_t bytes) const noexcept {
    return bytes <= short_payload.size() ? short_payload.data() : long_payload.data();
  }
};

}  // namespace brigade::comm
