#include "comm/messages.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
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

std::string describe_leaves(const Call& call) {
  if (!call.leaves) return "";
  return fmt::format(" over [{}] leaves", listed(call.leaves->size(), kPairsListed, ", ",
                                                 [&](std::size_t i) { return std::to_string((*call.leaves)[i]); }));
}

// The arguments that only some operations have.
std::string describe_arguments(const Post& post) {
  switch (post.call.operation) {
    case Operation::kAllReduce:
    case Operation::kReduce:
    case Operation::kReduceScatter: {
      const std::string divisor =
          post.call.reduction.divisor == 1.0 ? "" : fmt::format(" / {}", post.call.reduction.divisor);
      const std::string root = post.call.operation == Operation::kReduce ? fmt::format(" to {}", post.call.root) : "";
      return fmt::format(" ({}{}){}{}", name_of(post.call.reduction.op), divisor, root, describe_leaves(post.call));
    }
    case Operation::kBroadcast:
      return fmt::format(" from {}", post.call.root);
    case Operation::kPermute:
      return fmt::format(" along [{}]", describe_pairs(post.pairs));
    default:
      return "";
  }
}

// What differs between two posts whose fingerprints do, the most telling first.
Mismatch difference(const Post& a, const Post& b) {
  if (a.call.operation != b.call.operation) return {"different operations"};
  if (a.tag.view() != b.tag.view()) return {"different tags"};
  if (a.call.reduction.op != b.call.reduction.op || a.call.reduction.divisor != b.call.reduction.divisor)
    return {"different reductions"};
  if (a.call.root != b.call.root) return {"different roots"};
  if (a.call.leaves.has_value() != b.call.leaves.has_value()) return {"one side states leaves, the other does not"};
  if (a.pairs != b.pairs) return {"different pairs"};
  if (a.pieces.size() != b.pieces.size()) return {"different numbers of pieces"};
  for (std::size_t i = 0; i < a.pieces.size(); ++i) {
    const Piece &one = a.pieces[i], &other = b.pieces[i];
    const std::string first = describe_piece(a.call.operation, one);
    const std::string second = describe_piece(b.call.operation, other);
    const auto differ_in = [&](std::string_view what) {
      return Mismatch{fmt::format("{} of piece {}: {} and {}", what, i, first, second), i};
    };
    if (one.dtype != other.dtype || one.origin != other.origin) return differ_in("dtype");
    if (first != second) return differ_in("size");
    if ((one.shape.data() == nullptr) != (other.shape.data() == nullptr)) {
      return {fmt::format("piece {}: one side states a shape, the other does not", i), i};
    }
  }
  return {"tags that differ after their beginning"};
}

// " among ranks [0, 2]" for a group of some participants only.
std::string describe_group(const Meeting& meeting) {
  if (meeting.size() == meeting.roster().size()) return "";
  return fmt::format(" among ranks [{}]", listed(meeting.ranks().size(), kRanksListed, ", ",
                                                 [&](std::size_t i) { return std::to_string(meeting.ranks()[i]); }));
}

std::string describe_absent(const Meeting& meeting, int rank) {
  const int seat = meeting.rank_in_roster(rank);
  const std::optional<std::uint64_t> last = meeting.last_sequence(rank);
  const std::string_view state = meeting.roster().has_left(seat) ? "has left the group" : "has not arrived";
  if (!last) return fmt::format("rank {} {}, before its first operation", seat, state);
  return fmt::format("rank {} {}; its last was operation {}, {}", seat, state, meeting.number_of(*last),
                     describe(meeting.post(rank, *last)));
}

std::string describe_state(const View& view, int rank) {
  const Meeting& meeting = view.meeting;
  if (!meeting.has_arrived(rank, view.sequence)) return describe_absent(meeting, rank);
  const int seat = meeting.rank_in_roster(rank);
  // Of an operation that is complete here, only the own post still cannot be written again; all were alike.
  const int whose = meeting.has_finished(view.rank, view.sequence) ? view.rank : rank;
  const std::string what = describe(meeting.post(whose, view.sequence));
  if (meeting.has_finished(rank, view.sequence)) return fmt::format("rank {} is through with {}", seat, what);
  if (meeting.roster().is_moving(seat)) return fmt::format("rank {} is moving data in {}", seat, what);
  const std::optional<std::chrono::nanoseconds> waiting = meeting.roster().waiting_for(seat);
  if (waiting) return fmt::format("rank {} waits in {} for {}", seat, what, in_seconds(*waiting));
  // Who builds the message has just stopped to wait.
  return fmt::format("rank {} {} {}", seat, rank == view.rank ? "waits in" : "has begun", what);
}

// One line per participant: who is where.
std::string table(const View& view) {
  return listed(static_cast<std::size_t>(view.meeting.size()), kRanksListed, "\n  ",
                [&](std::size_t rank) { return describe_state(view, static_cast<int>(rank)); });
}

std::string_view name_of_group(const View& view) { return view.meeting.roster().name(); }

std::uint64_t number_of(const View& view) { return view.meeting.number_of(view.sequence); }

int seat_of(const View& view) { return view.meeting.rank_in_roster(view.rank); }

// Participants called the same, so it is their addends.
Mismatch leaves_that_do_not_fit(const View& view) {
  const std::string table =
      listed(static_cast<std::size_t>(view.meeting.size()), kRanksListed, "; ", [&](std::size_t rank) {
        const Post& post = view.meeting.post(static_cast<int>(rank), view.sequence);
        return fmt::format("rank {} called {}", view.meeting.rank_in_roster(static_cast<int>(rank)), describe(post));
      });
  return {prefixed(name_of_group(view),
                   fmt::format("the participants' addends are not whole subtrees of the sum of all leaves: {}. Nothing "
                               "was moved (this was operation {}{})",
                               table, number_of(view), describe_group(view.meeting)))};
}

}  // namespace

std::string describe(const Post& post) {
  const std::string tag = post.tag.view().empty() ? "" : fmt::format(" \"{}\"", post.tag.view());
  const std::string pieces = listed(post.pieces.size(), kPiecesListed, ", ",
                                    [&](std::size_t i) { return describe_piece(post.call.operation, post.pieces[i]); });
  return fmt::format("{}{}{}{}{} at {}", name_of(post.call.operation), tag, describe_arguments(post),
                     pieces.empty() ? "" : " of ", pieces, to_string(post.site));
}

Mismatch mismatch(const View& view) {
  const Post& own = view.meeting.post(view.rank, view.sequence);
  int other = 0;
  while (other < view.meeting.size() && view.meeting.post(other, view.sequence).fingerprint == own.fingerprint) ++other;
  if (other == view.meeting.size()) return leaves_that_do_not_fit(view);
  const Post& theirs = view.meeting.post(other, view.sequence);
  const Mismatch first = difference(own, theirs);
  return {prefixed(name_of_group(view),
                   fmt::format("participants called different collectives ({}): rank {} called {}; rank {} called {}. "
                               "Nothing was moved. Every participant must call the same operations in the same order "
                               "(this was operation {}{})",
                               first.text, seat_of(view), describe(own), view.meeting.rank_in_roster(other),
                               describe(theirs), number_of(view), describe_group(view.meeting))),
          first.piece};
}

std::string someone_left(const View& view) {
  std::string gone;
  for (int rank = 0; rank < view.meeting.size(); ++rank) {
    if (view.meeting.has_arrived(rank, view.sequence)) continue;
    if (!view.meeting.roster().has_left(view.meeting.rank_in_roster(rank))) continue;
    gone += (gone.empty() ? "" : "; ") + describe_absent(view.meeting, rank);
  }
  return prefixed(name_of_group(view),
                  fmt::format("operation {}{} can never complete: {}. A participant that leaves early (its body "
                              "returned before this call, or did not make it) must not leave others in a collective",
                              number_of(view), describe_group(view.meeting), gone));
}

std::string deadline(const View& view, bool of_call, std::chrono::nanoseconds time_without_progress) {
  const std::string which = of_call ? std::string("the call's deadline passed")
                                    : fmt::format("nobody made progress for {}", in_seconds(time_without_progress));
  const std::string_view advice =
      of_call ? ""
              : "Look for what keeps the missing ones; if they only compute for long, raise the limit "
                "(BRIGADE_DEADLINE, in seconds)\n";
  return prefixed(name_of_group(view), fmt::format("{} in operation {}{}:\n  {}\n{}", which, number_of(view),
                                                   describe_group(view.meeting), table(view), advice));
}

std::string deadlock(std::string_view group, const std::vector<Wait>& circle) {
  const auto describe_wait = [&](std::size_t i) {
    const Wait& wait = circle[i];
    const std::vector<int>& ranks = wait.meeting->ranks();
    const auto rank = static_cast<int>(std::find(ranks.begin(), ranks.end(), wait.rank) - ranks.begin());
    return fmt::format("rank {} waits for rank {} in {}, operation {}{}", wait.rank,
                       circle[(i + 1) % circle.size()].rank, describe(wait.meeting->post(rank, wait.sequence)),
                       wait.meeting->number_of(wait.sequence), describe_group(*wait.meeting));
  };
  return prefixed(group, fmt::format("participants wait for one another in different groups: {}. Nothing of these was "
                                     "moved. Every participant must call the same operations among the same "
                                     "participants in the same order",
                                     listed(circle.size(), kRanksListed, "; ", describe_wait)));
}

std::string dropped(const View& view) {
  return prefixed(name_of_group(view),
                  fmt::format("rank {} gave up operation {}, {}, before it was complete: what start() returns must "
                              "live until its wait() has returned",
                              seat_of(view), number_of(view), describe(view.meeting.post(view.rank, view.sequence))));
}

std::string released(const View& view, const Failure& failure) {
  // A deadline's text lists everyone already.
  if (failure.kind == Failure::Kind::kDeadline) return failure.text;
  return fmt::format("{}. Rank {} was in operation {}{}:\n  {}\n", failure.text, seat_of(view), number_of(view),
                     describe_group(view.meeting), table(view));
}

std::string refused(const Failure& failure, int rank, const Call& call, const CallOptions& options) {
  const std::string tag = options.tag.empty() ? "" : fmt::format(" \"{}\"", options.tag);
  return fmt::format("{}. Rank {} came to {}{} at {} afterwards; the group can be used again once it is reset",
                     failure.text, rank, name_of(call.operation), tag, to_string(options.site));
}

std::string failed(std::string_view group, int rank, std::string_view reason) {
  return prefixed(group, fmt::format("rank {} failed: {}", rank, reason));
}

}  // namespace brigade::comm::messages
