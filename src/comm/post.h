// What one participant shows the others in one operation. Everything but the spans' contents lies in memory of the
// group, so a message about a participant can be built after it has left.
#pragma once

#include <hwy/cache_control.h>  // Prefetch

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <source_location>
#include <string_view>
#include <type_traits>
#include <vector>

#include "brigade/comm/group.h"
#include "comm/copy.h"
#include "comm/moves.h"
#include "comm/roster.h"

namespace brigade::comm {

// A name of bounded length that needs no allocation.
class Tag {
 public:
  void assign(std::string_view text) noexcept {
    size_ = std::min(text.size(), text_.size());
    std::copy_n(text.data(), size_, text_.data());
  }
  std::string_view view() const noexcept { return {text_.data(), size_}; }

 private:
  std::array<char, 80> text_ = {};
  std::size_t size_ = 0;
};

struct Post {
  // Payloads up to this size are copied into the post. Others then never touch the participant's own memory, so one
  // meeting is enough.
  static constexpr std::size_t kPayloadBytes = 1024;

  // Of a piece in a payload: so that the next one begins where a vector may.
  static constexpr std::size_t aligned(std::size_t bytes) noexcept { return (bytes + 15) / 16 * 16; }

  // Of one piece that is moved directly.
  struct PieceSpans {
    std::span<const std::byte> in;
    std::span<std::byte> out;
  };

  // The first line is all that participants read of each other's posts when they pass a few bytes; of one piece that is
  // moved directly it holds the spans, so that besides it they read only counters of the region. The stamp is the number of
  // the operation, stored when all else is in place; operations are numbered from 1.
  alignas(kCacheLine) std::atomic<std::uint64_t> stamp{0};
  std::uint64_t fingerprint = 0;
  std::uint64_t finished = 0;  // the last operation that this participant was through with then
  std::array<std::byte, kCacheLine - 24> short_payload;  // or the spans of the first piece

  // This participant's region of an operation that moves data directly: so many slices, of which so many were claimed
  // (claims beyond the last are counted, too) and carried out, by whomever.
  alignas(kCacheLine) std::atomic<std::uint32_t> claimed{0};
  std::atomic<std::uint32_t> done{0};
  std::uint32_t slices = 0;

  alignas(kCacheLine) std::array<std::byte, kPayloadBytes> long_payload;

  // Read where spans are moved directly, and by messages. Spans of `call` are those of the vectors.
  alignas(kCacheLine) Call call;
  std::vector<Piece> pieces;
  std::vector<std::size_t> starts;  // of each piece's part of the region, in bytes, and the end of the last
  std::vector<std::int64_t> shapes;
  std::vector<RankPair> pairs;
  std::vector<std::int32_t> leaves;
  std::source_location site = {};
  Tag tag;

  // Everything except the first line, payload and region. May throw bad_alloc, before anyone sees the post.
  void describe(const Call& given, const CallOptions& options) {
    keep(given.pieces, pieces);
    keep_shapes();
    keep(given.pairs, pairs);
    call = given;
    call.pieces = pieces;
    call.pairs = pairs;
    if (given.leaves) {
      keep(*given.leaves, leaves);
      call.leaves = leaves;
    }
    site = options.site;
    tag.assign(options.tag);
  }

  // Divides this participant's region into slices that nobody has claimed.
  void cut(int rank, int participants) {
    starts.assign(1, 0);
    for (const Piece& piece : pieces) starts.push_back(starts.back() + piece.out.size());
    slices = Region(call.operation, rank, participants, starts.back()).slices();
    claimed.store(0, std::memory_order_relaxed);
    done.store(0, std::memory_order_relaxed);
  }

  // Where all pieces are moved directly.
  void show_first_spans() noexcept {
    const PieceSpans spans = {pieces[0].in, pieces[0].out};
    static_assert(sizeof spans <= sizeof short_payload && std::is_trivially_copyable_v<PieceSpans>);
    std::memcpy(short_payload.data(), &spans, sizeof spans);
  }
  PieceSpans spans_of(std::size_t piece) const noexcept {
    if (piece > 0) return {pieces[piece].in, pieces[piece].out};
    PieceSpans spans;
    std::memcpy(&spans, short_payload.data(), sizeof spans);
    return spans;
  }

  std::byte* payload(std::size_t bytes) noexcept {
    return is_short(bytes) ? short_payload.data() : long_payload.data();
  }
  const std::byte* payload(std::size_t bytes) const noexcept {
    return is_short(bytes) ? short_payload.data() : long_payload.data();
  }
  // Takes the payload's lines from those who read them last, so that writing it does not wait for that.
  void expect_payload(std::size_t bytes) const noexcept { for_each_line(bytes, prefetch_to_write); }
  // Fetches the payload of another participant, that has arrived.
  void fetch_payload(std::size_t bytes) const noexcept {
    for_each_line(bytes, [](const std::byte* line) { hwy::Prefetch(line); });
  }

 private:
  bool is_short(std::size_t bytes) const noexcept { return bytes <= short_payload.size(); }
  template <class F>
  void for_each_line(std::size_t bytes, F f) const noexcept {
    if (is_short(bytes)) return;
    for (std::size_t at = 0; at < bytes; at += kCacheLine) f(&long_payload[at]);
  }

  // Element by element: there are few, and a call of memmove costs more than they do.
  template <class T>
  static void keep(std::span<const T> given, std::vector<T>& kept) {
    kept.resize(given.size());
    for (std::size_t i = 0; i < given.size(); ++i) kept[i] = given[i];
  }

  // Shapes are the participant's own memory too; messages need them when it has left.
  void keep_shapes() {
    std::size_t count = 0;
    for (const Piece& piece : pieces) count += piece.shape.size();
    shapes.resize(count);
    std::int64_t* next = shapes.data();
    for (Piece& piece : pieces) {
      if (piece.shape.empty()) continue;
      const std::int64_t* kept = next;
      for (const std::int64_t size : piece.shape) *next++ = size;
      piece.shape = {kept, piece.shape.size()};
    }
  }
};

}  // namespace brigade::comm
