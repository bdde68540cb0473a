#include "brigade/comm/call.h"

#include <array>
#include <bit>
#include <cstring>

namespace brigade::comm {
namespace {

constexpr std::array<std::string_view, kOperationCount> kOperationNames = {
    "all_reduce", "reduce_scatter", "all_gather", "broadcast", "all_to_all", "permute", "barrier"};
constexpr std::array<std::string_view, 3> kReduceOpNames = {"sum", "min", "max"};

// Steps are 2^64 divided by the golden ratio; the other constants are those of MurmurHash3's last mix.
class Digest {
 public:
  // Words are mixed independently of one another, so that a processor does several at one time.
  void absorb(std::uint64_t word) noexcept {
    offset_ += 0x9E3779B97F4A7C15;
    sum_ += mixed(word + offset_);
  }

  template <class High, class Low>
  void absorb_halves(High high, Low low) noexcept {
    absorb(std::uint64_t{static_cast<std::uint32_t>(high)} << 32 | static_cast<std::uint32_t>(low));
  }

  // Tells texts of one length apart.
  void absorb(std::string_view text) noexcept {
    const std::size_t size = text.size();
    if (size >= 8) {
      for (std::size_t at = 0; at + 8 < size; at += 8) absorb(word_at<std::uint64_t>(text, at));
      absorb(word_at<std::uint64_t>(text, size - 8));
    } else if (size >= 4) {
      absorb_halves(word_at<std::uint32_t>(text, 0), word_at<std::uint32_t>(text, size - 4));
    } else if (size > 0) {
      absorb_halves(word_at<std::uint8_t>(text, 0) << 8 | word_at<std::uint8_t>(text, size / 2),
                    word_at<std::uint8_t>(text, size - 1));
    }
  }

  std::uint64_t value() const noexcept { return sum_; }

 private:
  // Every line is a bijection.
  static constexpr std::uint64_t mixed(std::uint64_t word) noexcept {
    word = (word ^ word >> 33) * 0xFF51AFD7ED558CCD;
    word = (word ^ word >> 33) * 0xC4CEB9FE1A85EC53;
    return word ^ word >> 33;
  }

  template <class Word>
  static Word word_at(std::string_view text, std::size_t at) noexcept {
    Word word;
    std::memcpy(&word, text.data() + at, sizeof word);
    return word;
  }

  std::uint64_t sum_ = 0;
  std::uint64_t offset_ = 0;
};

}  // namespace

std::string_view name_of(Operation operation) noexcept { return kOperationNames[static_cast<std::size_t>(operation)]; }

std::string_view name_of(ReduceOp op) noexcept { return kReduceOpNames[static_cast<std::size_t>(op)]; }

std::uint64_t fingerprint(const Call& call, std::string_view tag) noexcept {
  Digest digest;
  digest.absorb_halves(static_cast<std::uint32_t>(call.operation) << 8 | static_cast<std::uint32_t>(call.reduction.op),
                       call.root);
  digest.absorb(std::bit_cast<std::uint64_t>(call.reduction.divisor));
  digest.absorb_halves(call.pieces.size(), call.pairs.size());
  digest.absorb(tag.size());
  digest.absorb(tag);
  for (const Piece& piece : call.pieces) {
    // No span has 2^56 bytes.
    digest.absorb(static_cast<std::uint64_t>(piece.dtype) << 56 | common_bytes(call.operation, piece));
    digest.absorb_halves(piece.origin.size(), piece.shape.data() == nullptr ? 0 : piece.shape.size() + 1);
    digest.absorb(piece.origin);
    for (const std::int64_t size : piece.shape) digest.absorb(static_cast<std::uint64_t>(size));
  }
  for (const auto& [source, destination] : call.pairs) digest.absorb_halves(source, destination);
  return digest.value();
}

int source_of(std::span<const RankPair> pairs, int destination) noexcept {
  for (const RankPair& pair : pairs) {
    if (pair.second == destination) return pair.first;
  }
  return -1;
}

}  // namespace brigade::comm
