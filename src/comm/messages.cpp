#include "comm/messages.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <chrono>
#include <optional>
#include <vector>

#include "brigade/base/error.h"

namespace brigade::comm::messages {
namespace {

constexpr std::size_t kPiecesListed = 4;
constexpr std::size_t kPairsListed = 8;
constexpr std::size_t kRanksListed = 32;

std::string prefixed(std::string_view group, std::string text) {
  return group.empty() ? text : fmt::format("{}: {}", group, text);
}

std::string in_seconds(std::chrono::nanoseconds time) {
  return fmt::format("{:.3g} s", std::chrono::duration<double>(time).count());
}

// Joins what `item(i)` gives for the first `limit` of `count`, and says how many more there are.
template <class Item>
std::string listed(std::size_t count, std::size_t limit, std::string_view separator, Item item) {
  std::string text;
  for (std::size_t i = 0; i < std::min(count, limit); ++i) {
    if (i > 0) text += separator;
    text += item(i);
  }
  if (count > limit) text += fmt::format("{}and {} more", separator, count - limit);
  return text;
}

// "float32[2, 3]", or the number of elements where no shape is stated; "float32[4] from float16" after a conversion.
std::string describe_piece(Operation operation, const Piece& piece) {
  const std::string origin = piece.origin.empty() ? "" : fmt::format(" from {}", piece.origin);
  if (piece.shape.data() != nullptr) {
    return fmt::format("{}[{}]{}", name_of(piece.dtype), fmt::join(piece.shape, ", "), origin);
  }
  return fmt::format("{}[{}]{}", name_of(piece.dtype), common_bytes(operation, piece) / size_of(piece.dtype), origin);
}

std::string describe_pairs(const std::vector<RankPair>& pairs) {
  return listed(pairs.size(), kPairsListed, ", ",
                [&](std::size_t i) { return fmt::format("({}, {})", pairs[i].first, pairs[i].second); });
}

// The arguments that only some operations have.
std::string describe_arguments(const Post& post) {
  switch (post.operation) {
    case Operation::kAllReduce:
    case Operation::kReduceScatter: {
      const std::string divisor = post.reduction.divisor == 1.0 ? "" : fmt::format(" / {}", post.reduction.divisor);
      return fmt::format(" ({}{})", name_of(post.reduction.op), divisor);
    }
    case Operation::kBroadcast:
      return fmt::format(" from {}", post.root);
    case Operation::kPermute:
      return fmt::format(" along [{}]", describe_pairs(post.pairs));
    default:
      return "";
  }
}

// What differs between two posts whose fingerprints do, the most telling first.
std::string difference(const Post& a, const Post& b) {
  if (a.operation != b.operation) return "different operations";
  if (a.tag.view() != b.tag.view()) return "different tags";
  if (a.reduction.op != b.reduction.op || a.reduction.divisor != b.reduction.divisor) return "different reductions";
  if (a.root != b.root) return "different roots";
  if (a.pairs != b.pairs) return "different pairs";
  if (a.pieces.size() != b.pieces.size()) return "different numbers of pieces";
  for (std::size_t i = 0; i < a.pieces.size(); ++i) {
    const std::string first = describe_piece(a.operation, a.pieces[i]);
    const std::string second = describe_piece(b.operation, b.pieces[i]);
    if (a.pieces[i].dtype != b.pieces[i].dtype) return fmt::format("dtype of piece {}: {} and {}", i, first, second);
    if (first != second) return fmt::format("size of piece {}: {} and {}", i, first, second);
    if ((a.pieces[i].shape.data() == nullptr) != (b.pieces[i].shape.data() == nullptr)) {
      return fmt::format("piece {}: one side states a shape, the other does not", i);
    }
  }
  return "tags that differ after their beginning";
}

std::string describe_absent(const Meeting& meeting, int rank) {
  const std::uint64_t last = meeting.last_sequence(rank);
  const std::string_view state = meeting.has_left(rank) ? "has left the group" : "has not arrived";
  if (last == 0) return fmt::format("rank {} {}, before its first operation", rank, state);
  return fmt::format("rank {} {}; its last was operation {}, {}", rank, state, last,
                     describe(meeting.post(rank, last)));
}

std::string describe_state(const View& view, int rank) {
  const std::uint64_t phase = view.meeting.post(rank, view.sequence).phase.load();
  if (phase < phase_of(view.sequence, Step::kArrived)) return describe_absent(view.meeting, rank);
  const std::string what = describe(view.meeting.post(rank, view.sequence));
  if (phase == phase_of(view.sequence, Step::kMoving)) return fmt::format("rank {} is moving data in {}", rank, what);
  if (phase == phase_of(view.sequence, Step::kFinished))
    return fmt::format("rank {} has finished its part of {}", rank, what);
  const std::optional<std::chrono::nanoseconds> waiting = view.meeting.waiting_for(rank);
  return fmt::format("rank {} waits in {}{}", rank, what, waiting ? " for " + in_seconds(*waiting) : "");
}

// One line per participant: who is where.
std::string table(const View& view) {
  return listed(static_cast<std::size_t>(view.meeting.size()), kRanksListed, "\n  ",
                [&](std::size_t rank) { return describe_state(view, static_cast<int>(rank)); });
}

}  // namespace

std::string describe(const Post& post) {
  const std::string tag = post.tag.view().empty() ? "" : fmt::format(" \"{}\"", post.tag.view());
  const std::string pieces = listed(post.pieces.size(), kPiecesListed, ", ",
                                    [&](std::size_t i) { return describe_piece(post.operation, post.pieces[i]); });
  return fmt::format("{}{}{}{}{} at {}", name_of(post.operation), tag, describe_arguments(post),
                     pieces.empty() ? "" : " of ", pieces, to_string(post.site));
}

std::string mismatch(const View& view) {
  const Post& own = view.meeting.post(view.rank, view.sequence);
  for (int other = 0; other < view.meeting.size(); ++other) {
    const Post& theirs = view.meeting.post(other, view.sequence);
    if (theirs.fingerprint == own.fingerprint) continue;
    return prefixed(
        view.group,
        fmt::format("participants called different collectives ({}): rank {} called {}; rank {} called {}. "
                    "Nothing was moved. Every participant must call the same operations in the same order "
                    "(this was operation {})",
                    difference(own, theirs), view.rank, describe(own), other, describe(theirs), view.sequence));
  }
  return {};
}

std::string someone_left(const View& view) {
  std::string gone;
  for (int rank = 0; rank < view.meeting.size(); ++rank) {
    const bool arrived = view.meeting.post(rank, view.sequence).phase.load() >= phase_of(view.sequence, Step::kArrived);
    if (arrived || !view.meeting.has_left(rank)) continue;
    gone += (gone.empty() ? "" : "; ") + describe_absent(view.meeting, rank);
  }
  return prefixed(view.group, fmt::format("operation {} can never complete: {}", view.sequence, gone));
}

std::string deadline(const View& view, std::string_view which_limit) {
  return prefixed(view.group, fmt::format("{} in operation {}:\n  {}\n", which_limit, view.sequence, table(view)));
}

std::string released(const View& view, const Failure& failure) {
  // A deadline's text lists everyone already.
  if (failure.kind == Failure::Kind::kDeadline) return failure.text;
  return fmt::format("{}. Rank {} was in operation {}:\n  {}\n", failure.text, view.rank, view.sequence, table(view));
}

std::string refused(const Failure& failure, int rank, const Call& call, const CallOptions& options) {
  return fmt::format("{}. Rank {} came to {} \"{}\" at {} afterwards; the group can be used again once it is reset",
                     failure.text, rank, name_of(call.operation), options.tag, to_string(options.site));
}

std::string failed(std::string_view group, int rank, std::string_view reason) {
  return prefixed(group, fmt::format("rank {} failed: {}", rank, reason));
}

}  // namespace brigade::comm::messages
