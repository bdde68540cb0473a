#include "comm/member.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <exception>
#include <limits>

#include "comm/deadlock.h"
#include "comm/reduce_kernels.h"
#include "comm/subgroups.h"

namespace brigade::comm {
namespace {

using Clock = Deadline::Clock;

// With payloads every participant reads everyone's, so their sum is bounded too.
constexpr std::size_t kPayloadsBytes = std::size_t{64} * 1024;

// Moving less than this is not worth waking others for, nor two readings of the clock.
constexpr std::size_t kWorthWaking = std::size_t{256} * 1024;
constexpr std::size_t kWorthTiming = std::size_t{16} * 1024;

// Results of all participants together that are larger than this push each other out of a cache which cores share.
constexpr std::size_t kWorthStreaming = std::size_t{16} * 1024 * 1024;

// Nobody is woken when a post becomes free, which happens to those only who begin many operations ahead of others.
constexpr std::chrono::nanoseconds kNap = std::chrono::milliseconds(1);

// Looks at an operation, a moment's worth, before the small regions of others are looked at.
constexpr int kLooksAlone = 32;

constexpr std::uint64_t kNever = std::numeric_limits<std::uint64_t>::max();  // an operation that is never complete

constexpr std::chrono::nanoseconds kUnlimited = std::chrono::nanoseconds::max();

constexpr std::size_t aligned(std::size_t bytes) noexcept { return (bytes + 15) / 16 * 16; }

std::size_t payload_bytes(const Call& call) noexcept {
  std::size_t bytes = 0;
  for (const Piece& piece : call.pieces) bytes += aligned(common_bytes(call.operation, piece));
  return bytes;
}

std::size_t bytes_given(const Piece& piece) noexcept {
  std::size_t bytes = piece.in.size();
  for (const ConstBytes addend : piece.addends) bytes += addend.size();
  return bytes;
}

[[noreturn]] void raise(Failure::Kind kind, const std::string& text, const ErrorContext& context) {
  switch (kind) {
    case Failure::Kind::kMismatch:
      throw CollectiveMismatch(text, context);
    case Failure::Kind::kDeadline:
      throw DeadlineExceeded(text, context);
    case Failure::Kind::kAborted:
      break;
  }
  throw Aborted(text, context);
}

}  // namespace

ThreadGroup::Member::Member(Meeting& meeting, Subgroups& subgroups, int rank)
    : meeting_(meeting),
      subgroups_(subgroups),
      rank_(rank),
      seat_(meeting.rank_in_roster(rank)),
      payload_limit_(std::min(Post::kPayloadBytes, kPayloadsBytes / static_cast<std::size_t>(meeting.size()))),
      inputs_(static_cast<std::size_t>(meeting.size())),
      outputs_(inputs_.size()) {}

void ThreadGroup::Member::run(const Call& call, const CallOptions& options) {
  finish(begin(call, options, Next::kWaits));
}

std::uint64_t ThreadGroup::Member::begin(const Call& call, const CallOptions& options) {
  note_in_flight(true);
  return begin(call, options, Next::kGoesOn);
}

std::uint64_t ThreadGroup::Member::begin(const Call& call, const CallOptions& options, Next next) {
  if (roster().failed()) leave_late(call, options);
  const std::uint64_t sequence = last_begun_ + 1;
  if (size() > 1 && !meeting_.is_free(sequence, known_finished_)) await_free_post(sequence, options);
  prepare(sequence, call, options);

  last_begun_ = sequence;
  if (size() == 1) {
    run_alone(call);
    completed_ = sequence;
  } else {
    // Who comes last and waits next may do small work alone and wake the others when it is done.
    const Begun& own = begun(sequence);
    meeting_.arrive(rank_, sequence, own.by_payload || next == Next::kGoesOn || !is_small(sequence));
  }
  Statistics& statistics = roster().statistics(seat_);
  ++statistics.calls;
  for (const Piece& piece : call.pieces) statistics.bytes += static_cast<std::int64_t>(bytes_given(piece));
  return sequence;
}

// Returns once everyone is through with what the post of `sequence` held before.
void ThreadGroup::Member::await_free_post(std::uint64_t sequence, const CallOptions& options) {
  const auto look = [&] {
    const Seen own = advance();
    if (meeting_.is_free(sequence, known_finished_)) return Seen::kReached;
    if (own != Seen::kReached) return own;
    return roster().failed() ? Seen::kFailed : Seen::kNotYet;  // all is complete here, but not with the others
  };
  const auto seen = wait_for(sequence - Meeting::kInFlight, look,
                             {.limit = roster().time_without_progress(), .deadline = options.deadline, .nap = kNap});
  if (seen != Seen::kReached) give_up(kNever, seen, options.deadline, options.site);
}

// Everything that may throw for reasons of this participant's own. The others learn that it will not come.
void ThreadGroup::Member::prepare(std::uint64_t sequence, const Call& call, const CallOptions& options) {
  try {
    check_call(call, rank_, size(), caller(options.site));
    if (size() == 1) {
      leaves_.clear();
      if (call.leaves) keep_leaves(*call.leaves);
      return;
    }
    Begun& own = begun(sequence);
    own.deadline = options.deadline;
    own.bytes = payload_bytes(call);
    own.by_payload = own.bytes <= payload_limit_ && !call.leaves;

    Post& post = meeting_.post(rank_, sequence);
    if (own.by_payload) post.expect_payload(own.bytes);
    post.finished = completed_;
    roster().note_arrival(seat_);
    post.describe(call, options);
    const std::uint64_t digest = fingerprint(call, options.tag);
    // What the others wait for comes last and at one go: they take a line away between two stores that are far apart.
    if (own.by_payload) {
      std::byte* at = post.payload(own.bytes);
      for (const Piece& piece : call.pieces) {
        if (!piece.in.empty()) std::memcpy(at, piece.in.data(), piece.in.size());
        at += aligned(common_bytes(call.operation, piece));
      }
    } else {
      stage_inputs(post, own);
      post.cut(rank_, size());
      post.show_first_spans();
    }
    post.fingerprint = digest;
  } catch (const std::exception& error) {
    roster().fail(Failure::Kind::kAborted, seat_,
                  [&] { return messages::failed(roster().name(), seat_, error.what()); });
    throw;
  }
}

// Participants read each other's inputs in any order, so those that are also outputs are copied first. A reduction
// needs none of this: it reads and writes an element at one time.
void ThreadGroup::Member::stage_inputs(Post& post, Begun& own) const {
  if (post.call.operation != Operation::kAllToAll && post.call.operation != Operation::kPermute) return;
  const auto in_place = [](const Piece& piece) { return !piece.in.empty() && piece.in.data() == piece.out.data(); };
  std::size_t bytes = 0;
  for (const Piece& piece : post.pieces) bytes += in_place(piece) ? piece.in.size() : 0;
  if (bytes == 0) return;

  own.staging = std::make_unique_for_overwrite<std::byte[]>(bytes);
  std::size_t at = 0;
  for (Piece& piece : post.pieces) {
    if (!in_place(piece)) continue;
    std::memcpy(&own.staging[at], piece.in.data(), piece.in.size());
    piece.in = ConstBytes(&own.staging[at], piece.in.size());
    at += piece.in.size();
  }
}

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

Seen ThreadGroup::Member::advance() noexcept {
  while (completed_ < last_begun_) {
    if (has_thrown_) return Seen::kFailed;
    if (const Seen seen = carry_on(oldest()); seen != Seen::kReached) return seen;
    ++completed_;
  }
  if (is_in_flight_) note_in_flight(false);
  return Seen::kReached;
}

Seen ThreadGroup::Member::carry_on(std::uint64_t sequence) noexcept {
  if (!met_) {
    if (const Seen seen = meeting_.look_for_arrivals(sequence, next_); seen != Seen::kReached) return seen;
    if (const Begun& own = begun(sequence); own.by_payload) meeting_.fetch_payloads(sequence, own.bytes);
    if (!meeting_.all_alike(rank_, sequence)) return Seen::kMismatch;
    if (meeting_.post(rank_, sequence).call.leaves) {
      if (const Seen seen = meet_leaves(sequence); seen != Seen::kReached) return seen;
    }
    known_finished_ = std::max(known_finished_, meeting_.finished_before(sequence));
    met_ = true;
    next_ = 0;
  }
  Begun& own = begun(sequence);
  if (own.by_payload) {
    move_payloads(sequence);  // they stay until everyone is through, so nobody has to be waited for
  } else {
    carry_out_slices(sequence);
    if (const Seen seen = meeting_.look_for_done(sequence, next_); seen != Seen::kReached) return seen;
    own.staging.reset();
  }
  meeting_.finish(rank_, sequence);
  met_ = false;
  regions_ = looks_ = 0;
  next_ = 0;
  return Seen::kReached;
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
    at += aligned(piece_bytes);
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

// Of an operation that moves data directly, by this participant's region; the others' have as many bytes.
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
  const bool is_large = post.starts.back() * inputs_.size() >= kWorthStreaming;
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

void ThreadGroup::Member::finish(std::uint64_t ticket) {
  if (completed_ >= ticket) return;
  const Deadline deadline = begun(ticket).deadline;
  const auto seen = wait_for(ticket,
                             [&] {
                               const Seen own = advance();
                               return completed_ >= ticket ? Seen::kReached : own;
                             },
                             {.limit = roster().time_without_progress(), .deadline = deadline});
  if (seen != Seen::kReached) give_up(ticket, seen, deadline, meeting_.post(rank_, oldest()).site);
}

bool ThreadGroup::Member::try_finish(std::uint64_t ticket) {
  if (completed_ >= ticket) return true;
  advance_others();
  std::optional<Seen> seen = advance();
  if (completed_ >= ticket) return true;
  const Deadline deadline = begun(ticket).deadline;
  if (seen == Seen::kNotYet) {
    looks_ = std::max(looks_, kLooksAlone);  // it does not come back soon, and never sleeps
    const bool is_over =
        polling_.look(roster(), Clock::now()) >= roster().time_without_progress() || deadline.expired();
    if (!is_over) return false;
    seen.reset();
  }
  give_up(ticket, seen, deadline, meeting_.post(rank_, oldest()).site);
  return true;
}

void ThreadGroup::Member::abandon(std::uint64_t ticket) noexcept {
  if (completed_ >= ticket) return;  // also one of before a reset
  advance();
  if (completed_ < ticket) drop_all();
}

void ThreadGroup::Member::drop_all() noexcept {
  roster().fail(Failure::Kind::kAborted, seat_, [&] { return messages::dropped(view(oldest())); });
  has_thrown_ = true;
  note_in_flight(false);
  await_quiet();
}

// Waits as part of operation `sequence`. What was begun elsewhere is carried on meanwhile, as others may wait for it.
template <class Look>
std::optional<Seen> ThreadGroup::Member::wait_for(std::uint64_t sequence, Look look, Roster::Patience patience) {
  const auto look_everywhere = [&] {
    advance_others();
    return look();
  };
  return roster().wait(seat_, {&meeting_, sequence}, look_everywhere, patience,
                       [&] { break_deadlock(roster(), seat_); });
}

void ThreadGroup::Member::advance_others() noexcept {
  for (std::size_t i = subgroups_.in_flight(seat_).size(); i-- > 0;) {
    Member& other = *subgroups_.in_flight(seat_)[i];
    if (&other != this && other.advance() == Seen::kMismatch) other.fail_mismatched();
  }
}

void ThreadGroup::Member::await_quiet() noexcept {
  const auto look = [&] { return roster().is_quiet() ? Seen::kReached : Seen::kNotYet; };
  roster().wait(seat_, {}, look, {.limit = kUnlimited}, [] {});
}

void ThreadGroup::Member::note_in_flight(bool in_flight) {
  if (in_flight == is_in_flight_) return;
  std::vector<Member*>& all = subgroups_.in_flight(seat_);
  in_flight ? all.push_back(this) : static_cast<void>(std::erase(all, this));
  is_in_flight_ = in_flight;
}

void ThreadGroup::Member::fail_mismatched() noexcept {
  roster().fail(Failure::Kind::kMismatch, seat_, [&] { return messages::mismatch(view(oldest())).text; });
}

void ThreadGroup::Member::leave_late(const Call& call, const CallOptions& options) const {
  const Failure failure = roster().failure();
  raise(failure.kind, messages::refused(failure, seat_, call, options), caller(options.site));
}

// Operation `ticket` cannot go on, so the group fails, if it has not yet. Returns when the operation turns out to be complete
// once nobody moves any more, as it is for the others then; else throws.
void ThreadGroup::Member::give_up(std::uint64_t ticket, std::optional<Seen> seen, Deadline deadline,
                                  std::source_location site) {
  if (seen == Seen::kMismatch) {
    // Everyone finds the mismatch, so nobody moves. The failure is for those that come back without a reset.
    has_thrown_ = true;
    const messages::Mismatch mismatch = messages::mismatch(view(oldest()));
    fail_mismatched();
    throw CollectiveMismatch(mismatch.text, caller(site), mismatch.piece);
  }
  if (!seen) {
    roster().fail(Failure::Kind::kDeadline, seat_, [&] {
      return messages::deadline(view(stuck_at()), deadline.expired(), roster().time_without_progress());
    });
  } else if (!roster().failed()) {
    roster().fail(Failure::Kind::kMismatch, seat_, [&] { return messages::someone_left(view(stuck_at())); });
  }
  await_quiet();
  advance();
  if (completed_ >= ticket) return;
  has_thrown_ = true;
  const Failure failure = roster().failure();
  raise(failure.kind, messages::released(view(stuck_at()), failure), caller(site));
}

void ThreadGroup::Member::reset(std::uint64_t last) noexcept {
  last_begun_ = completed_ = known_finished_ = last;
  for (Begun& own : begun_) own.staging.reset();
  met_ = has_thrown_ = is_in_flight_ = false;
  regions_ = looks_ = 0;
  polling_ = {};
  next_ = 0;
}

Group& ThreadGroup::Member::among(std::span<const int> ranks) {
  const auto is_whole = [&] {
    if (ranks.size() != inputs_.size()) return false;
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      if (ranks[i] != static_cast<int>(i)) return false;
    }
    return true;
  };
  if (is_whole()) return *this;

  check_subgroup(ranks, rank_, size(), {.seat = seat_});
  std::vector<int> seats;
  seats.reserve(ranks.size());
  for (const int rank : ranks) seats.push_back(meeting_.rank_in_roster(rank));
  return subgroups_.among(seats,
                          static_cast<std::size_t>(std::find(ranks.begin(), ranks.end(), rank_) - ranks.begin()));
}

}  // namespace brigade::comm
