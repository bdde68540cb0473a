#include "comm/member.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <exception>
#include <limits>

#include "comm/deadlock.h"
#include "comm/subgroups.h"

namespace brigade::comm {
namespace {

using Clock = Deadline::Clock;

// With payloads every participant reads everyone's, so their sum is bounded too.
constexpr std::size_t kPayloadsBytes = std::size_t{64} * 1024;

// Nobody is woken when a post becomes free, which happens to those only who begin many operations ahead of others.
constexpr std::chrono::nanoseconds kNap = std::chrono::milliseconds(1);

constexpr std::uint64_t kNever = std::numeric_limits<std::uint64_t>::max();  // an operation that is never complete

constexpr std::chrono::nanoseconds kUnlimited = std::chrono::nanoseconds::max();

std::size_t payload_bytes(const Call& call) noexcept {
  std::size_t bytes = 0;
  for (const Piece& piece : call.pieces) bytes += Post::aligned(common_bytes(call.operation, piece));
  return bytes;
}

// Whether anyone reads what this participant gives.
bool shows_payload(const Call& call, int rank) noexcept {
  return call.operation != Operation::kBroadcast || rank == call.root;
}

// Whether every participant reads all that everyone gives.
bool reads_all(const Call& call) noexcept {
  return call.operation == Operation::kAllReduce || call.operation == Operation::kAllGather;
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
    if (own.by_payload && shows_payload(call, rank_)) post.expect_payload(own.bytes);
    post.finished = completed_;
    roster().note_arrival(seat_);
    post.describe(call, options);
    const std::uint64_t digest = fingerprint(call, options.tag);
    // What the others wait for comes last and at one go: they take a line away between two stores that are far apart.
    if (own.by_payload) {
      std::byte* at = post.payload(own.bytes);
      for (const Piece& piece : call.pieces) {
        if (!piece.in.empty() && shows_payload(call, rank_)) std::memcpy(at, piece.in.data(), piece.in.size());
        at += Post::aligned(common_bytes(call.operation, piece));
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
    if (const Begun& own = begun(sequence); own.by_payload && reads_all(meeting_.post(rank_, sequence).call))
      meeting_.fetch_payloads(rank_, sequence, own.bytes);
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
