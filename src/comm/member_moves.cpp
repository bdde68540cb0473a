// What a participant does to the data of an operation in which all have met.
#include <algorithm>
#include <chrono>
#include <exception>

#include "comm/member.h"
#include "comm/reduce_kernels.h"

namespace brigade::comm {
namespace {

using Clock = Deadline::Clock;

// Of all regions together: moving less than this is not worth waking others for, nor two readings of the clock.
constexpr std::size_t kWorthWaking = std::size_t{256} * 1024;
constexpr std::size_t kWorthTiming = std::size_t{16} * 1024;

// Results of all participants together that are larger than this push each other out of a cache which cores share.
constexpr std::size_t kWorthStreaming = std::size_t{16} * 1024 * 1024;

}  // namespace

void ThreadGroup::Member::run_alone(const Call& call) noexcept {
  for (const Piece& piece : call.pieces) {
    inputs_[0] = piece.in;
    outputs_[0] = piece.out;
    std::copy(piece.addends.begin(), piece.addends.end(), addends_.begin());
    move(call, 0, piece.dtype, {0, piece.out.size()}, spans_of(call), Stores::kCached);
  }
}

// Of all participants, in rank order.
void ThreadGroup::Member::keep_leaves(std::span<const std::int32_t> more) {
  leaves_.insert(leaves_.end(), more.begin(), more.end());
  addends_.resize(leaves_.size());
}

// Everybody does the same and comes to the same end.
Seen ThreadGroup::Member::meet_leaves(std::uint64_t sequence) noexcept {
  try {
    leaves_.clear();
    for (int rank = 0; rank < size(); ++rank) keep_leaves(meeting_.post(rank, sequence).leaves);
  } catch (const std::exception& error) {
    roster().fail(Failure::Kind::kAborted, seat_,
                  [&] { return messages::failed(roster().name(), seat_, error.what()); });
    return Seen::kFailed;
  }
  return Addends(addends_, leaves_).are_subtrees() ? Seen::kReached : Seen::kMismatch;
}

Spans ThreadGroup::Member::spans_of(const Call& call) noexcept {
  if (call.leaves) return {addends_, outputs_, leaves_};
  return {inputs_, outputs_, {}};
}

void ThreadGroup::Member::move_payloads(std::uint64_t sequence) noexcept {
  const Post& post = meeting_.post(rank_, sequence);
  const std::size_t bytes = begun(sequence).bytes;
  std::size_t at = 0;
  for (const Piece& piece : post.pieces) {
    const std::size_t piece_bytes = common_bytes(post.call.operation, piece);
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      inputs_[i] = ConstBytes(post_of(i, sequence).payload(bytes) + at, piece_bytes);
    }
    std::fill(outputs_.begin(), outputs_.end(), Bytes());
    outputs_[static_cast<std::size_t>(rank_)] = piece.out;
    move(post.call, rank_, piece.dtype, {0, piece.out.size()}, spans_of(post.call), Stores::kCached);
    at += Post::aligned(piece_bytes);
  }
}

// Its own region first, then whatever the others have not come to: they may be asleep, or computing.
void ThreadGroup::Member::carry_out_slices(std::uint64_t sequence) noexcept {
  if (regions_ == size()) return;
  const int regions = looks_at_all(sequence) ? size() : 1;
  if (regions_ >= regions) return;
  if (!roster().begin_moving(seat_)) {
    regions_ = size();
    return;
  }
  const bool timed = begun(sequence).bytes >= kWorthTiming;
  const Clock::time_point start = timed ? Clock::now() : Clock::time_point();
  for (; regions_ < regions; ++regions_) {
    const int owner = (rank_ + regions_) % size();
    while (const auto claim = meeting_.claim(owner, sequence)) {
      carry_out(sequence, owner, *claim);
      meeting_.count_done(owner, sequence);
    }
  }
  if (timed) roster().statistics(seat_).moving += Clock::now() - start;
  roster().finish_moving(seat_);
  if (!roster().anyone_sleeps()) return;
  int next = 0;
  if (meeting_.look_for_done(sequence, next) == Seen::kReached) roster().wake_all();
}

// Of an operation that moves data directly, by the results of one participant; the others' have as many bytes.
bool ThreadGroup::Member::is_small(std::uint64_t sequence) const noexcept {
  return meeting_.post(rank_, sequence).starts.back() < kWorthWaking;
}

// Small regions are mostly carried out by their owners before anyone else could look for them, which would keep the owners from
// their counters. So others wait a moment; not when somebody sleeps, as who came last has woken nobody for them, or is about to
// sleep, this participant included: somebody may wait for it elsewhere.
bool ThreadGroup::Member::looks_at_all(std::uint64_t sequence) noexcept {
  return !roster().spins() || !is_small(sequence) || ++looks_ > kLooksAlone || roster().anyone_sleeps();
}

void ThreadGroup::Member::carry_out(std::uint64_t sequence, int owner, std::uint32_t claim) noexcept {
  const Post& post = meeting_.post(owner, sequence);
  const Region region(post.call.operation, owner, size(), post.starts.back());
  const std::uint32_t slice = region.in_turn(claim);
  const std::size_t results = post.call.operation == Operation::kReduce ? 1 : inputs_.size();
  const bool is_large = post.starts.back() * results >= kWorthStreaming;
  auto piece = static_cast<std::size_t>(std::upper_bound(post.starts.begin(), post.starts.end(), region.cut(slice)) -
                                        post.starts.begin()) -
               1;
  for (; piece < post.pieces.size() && post.starts[piece] < region.cut(slice + 1); ++piece) {
    const Range range = region.in_piece(slice, post.starts[piece], post.starts[piece + 1]);
    if (range.empty()) continue;
    auto next_addend = addends_.begin();
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      const Post& theirs = post_of(i, sequence);
      const Post::PieceSpans spans = theirs.spans_of(piece);
      inputs_[i] = spans.in;
      outputs_[i] = spans.out;
      if (!post.call.leaves) continue;
      const auto& addends = theirs.pieces[piece].addends;
      next_addend = std::copy(addends.begin(), addends.end(), next_addend);
    }
    const Spans spans = spans_of(post.call);
    const bool streams = is_large && !is_in_place(post.call, owner, spans);
    move(post.call, owner, post.pieces[piece].dtype, range, spans, streams ? Stores::kStreaming : Stores::kCached);
  }
}

}  // namespace brigade::comm
