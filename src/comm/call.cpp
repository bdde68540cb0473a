#include "brigade/comm/call.h"

#include <array>
#include <bit>
#include <cstring>

namespace brigade::comm {
namespace {

constexpr std::array<std::string_view, kOperationCount> kOperationNames = {
    "all_reduce", "reduce", "reduce_scatter", "all_gather", "broadcast", "all_to_all", "permute", "barrier"};
constexpr std::array<std::string_view, 3> kReduceOpNames = {"sum", "min", "max"};

// A polynomial in an odd number (2^64 divided by the golden ratio), modulo 2^64, whose coefficients are what is absorbed. A
// multiplication by an odd number is a bijection, so a difference in one coefficient stays. Several cancel only if they
// happen to fit the number; they should therefore lie in low bits, which all the higher ones depend on.
class Digest {
 public:
  void absorb(std::uint64_t word) noexcept { value_ = value_ * 0x9E3779B97F4A7C15 + word; }

  // Tells texts of one length apart.
  void absorb(std::string_view text) noexcept {
    const std::size_t size = text.size();
    if (size >= 8) {
      for (std::size_t at = 0; at + 8 < size; at += 8) absorb(word_at<std::uint64_t>(text, at));
      absorb(word_at<std::uint64_t>(text, size - 8));
    } else if (size >= 4) {
      absorb(word_at<std::uint32_t>(text, 0));
      absorb(word_at<std::uint32_t>(text, size - 4));
    } else {
      for (const char letter : text) absorb(static_cast<std::uint64_t>(letter));
    }
  }

  std::uint64_t value() const noexcept { return value_; }

 private:
  template <class Word>
  static Word word_at(std::string_view text, std::size_t at) noexcept {
    Word word;
    std::memcpy(&word, text.data() + at, sizeof word);
    return word;
  }

  std::uint64_t value_ = 0;
};

}  // namespace

std::string_view name_of(Operation operation) noexcept { return kOperationNames[static_cast<std::size_t>(operation)]; }

std::string_view name_of(ReduceOp op) noexcept { return kReduceOpNames[static_cast<std::size_t>(op)]; }

std::uint64_t fingerprint(const Call& call, std::string_view tag) noexcept {
  Digest digest;
  digest.absorb(static_cast<std::uint64_t>(call.operation) << 8 | static_cast<std::uint64_t>(call.reduction.op));
  // Divisors differ in their high bits.
  digest.absorb(std::rotl(std::bit_cast<std::uint64_t>(call.reduction.divisor), 16));
  digest.absorb(static_cast<std::uint64_t>(call.root) << 1 | static_cast<std::uint64_t>(call.leaves.has_value()));
  digest.absorb(call.pieces.size());
  digest.absorb(call.pairs.size());
  digest.absorb(tag.size());
  digest.absorb(tag);
  for (const Piece& piece : call.pieces) {
    // No span has 2^56 bytes.
    digest.absorb(common_bytes(call.operation, piece) << 8 | static_cast<std::uint64_t>(piece.dtype));
    digest.absorb(piece.origin.size());
    digest.absorb(piece.origin);
    digest.absorb(piece.shape.data() == nullptr ? 0 : piece.shape.size() + 1);
    for (const std::int64_t size : piece.shape) digest.absorb(static_cast<std::uint64_t>(size));
  }
  for (const auto& [source, destination] : call.pairs) {
    digest.absorb(static_cast<std::uint64_t>(source));
    digest.absorb(static_cast<std::uint64_t>(destination));
  }
  return digest.value();
}

int source_of(std::span<const RankPair> pairs, int destination) noexcept {
  for (const RankPair& pair : pairs) {
    if (pair.second == destination) return pair.first;
  }
  return -1;
}

}  // namespace brigade::comm
