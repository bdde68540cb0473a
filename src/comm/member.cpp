#include "comm/member.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <exception>

#include "comm/checks.h"

namespace brigade::comm {
namespace {

using Clock = Deadline::Clock;

// With payloads every participant reads everyone's, so their sum is bounded too.
constexpr std::size_t kPayloadsBytes = std::size_t{64} * 1024;

constexpr std::size_t aligned(std::size_t bytes) noexcept { return (bytes + 15) / 16 * 16; }

std::size_t payload_bytes(const Call& call) noexcept {
  std::size_t bytes = 0;
  for (const Piece& piece : call.pieces) bytes += aligned(common_bytes(call.operation, piece));
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

ThreadGroup::Member::Member(Meeting& meeting, const std::string& group_name, int rank)
    : meeting_(meeting),
      group_name_(group_name),
      rank_(rank),
      inputs_(static_cast<std::size_t>(meeting.size())),
      scratch_(inputs_.size()),
      outs_(inputs_.size()) {}

Group& ThreadGroup::Member::among(std::span<const int>) { return *this; }
std::uint64_t ThreadGroup::Member::begin(const Call& call, const CallOptions& options) {
  run(call, options);
  return sequence_;
}
void ThreadGroup::Member::finish(std::uint64_t) {}
bool ThreadGroup::Member::try_finish(std::uint64_t) { return true; }
void ThreadGroup::Member::abandon(std::uint64_t) noexcept {}

void ThreadGroup::Member::run(const Call& call, const CallOptions& options) {
  if (meeting_.failed()) leave_late(call, options);
  ++sequence_;
  const std::size_t bytes = payload_bytes(call);
  const bool by_payload = bytes <= std::min(Post::kPayloadBytes, kPayloadsBytes / inputs_.size());
  const Staging staging = prepare(call, options, by_payload);

  if (size() == 1) {
    run_alone(call);
  } else if (by_payload) {
    write_payload(call, bytes);
    meet(options);
    move_from_payloads(call, bytes);
  } else {
    meet(options);
    move_directly(call, options);
  }
  ++statistics_.calls;
  for (const Piece& piece : call.pieces) statistics_.bytes += static_cast<std::int64_t>(piece.in.size());
}

// Everything that may throw for reasons of this participant's own. The others learn that it will not come.
ThreadGroup::Member::Staging ThreadGroup::Member::prepare(const Call& call, const CallOptions& options,
                                                          bool by_payload) {
  try {
    check_call(call, size(), context(options));
    if (size() == 1) return nullptr;
    own_post().describe(call, options);
    return by_payload ? nullptr : stage_inputs(call);
  } catch (const std::exception& error) {
    meeting_.fail(
        {.kind = Failure::Kind::kAborted, .rank = rank_, .text = messages::failed(group_name_, rank_, error.what())});
    throw;
  }
}

// Participants read each other's inputs in any order, so those that are also outputs are copied first. A reduction
// needs none of this: it reads and writes an element at one time.
ThreadGroup::Member::Staging ThreadGroup::Member::stage_inputs(const Call& call) {
  if (call.operation != Operation::kAllToAll && call.operation != Operation::kPermute) return nullptr;
  const auto in_place = [](const Piece& piece) { return piece.in.data() == piece.out.data(); };
  std::size_t bytes = 0;
  for (const Piece& piece : call.pieces) bytes += in_place(piece) ? piece.in.size() : 0;
  if (bytes == 0) return nullptr;

  auto staging = std::make_unique_for_overwrite<std::byte[]>(bytes);
  std::size_t at = 0;
  for (Piece& piece : own_post().pieces) {
    if (!in_place(piece) || piece.in.empty()) continue;
    std::memcpy(&staging[at], piece.in.data(), piece.in.size());
    piece.in = ConstBytes(&staging[at], piece.in.size());
    at += piece.in.size();
  }
  return staging;
}

void ThreadGroup::Member::run_alone(const Call& call) noexcept {
  for (const Piece& piece : call.pieces) {
    inputs_[0] = piece.in;
    pull(call, rank_, piece, inputs_);
  }
}

void ThreadGroup::Member::write_payload(const Call& call, std::size_t bytes) noexcept {
  std::byte* at = own_post().payload(bytes);
  for (const Piece& piece : call.pieces) {
    if (!piece.in.empty()) std::memcpy(at, piece.in.data(), piece.in.size());
    at += aligned(common_bytes(call.operation, piece));
  }
}

// Returns when every participant has posted the same call. Nothing has moved yet.
void ThreadGroup::Member::meet(const CallOptions& options) {
  meeting_.arrive(rank_, sequence_);
  switch (meeting_.await_arrivals(rank_, sequence_, options.deadline, statistics_.waiting)) {
    case Waited::kReached:
      break;
    case Waited::kFailed:
      leave_failed(options);
    case Waited::kTimedOut:
      leave_timed_out(options);
  }
  const std::uint64_t own = own_post().fingerprint;
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    if (post_of(i).fingerprint != own) leave_mismatched(options);
  }
}

// Payloads stay until everyone has arrived at the next operation, so this needs no second meeting.
void ThreadGroup::Member::move_from_payloads(const Call& call, std::size_t bytes) noexcept {
  std::size_t at = 0;
  for (const Piece& piece : call.pieces) {
    const std::size_t piece_bytes = common_bytes(call.operation, piece);
    for (std::size_t i = 0; i < inputs_.size(); ++i)
      inputs_[i] = ConstBytes(post_of(i).payload(bytes) + at, piece_bytes);
    pull(call, rank_, piece, inputs_);
    at += aligned(piece_bytes);
  }
}

void ThreadGroup::Member::move_directly(const Call& call, const CallOptions& options) {
  if (!meeting_.begin_moving(rank_, sequence_)) leave_failed(options);
  const Clock::time_point start = Clock::now();
  if (call.operation == Operation::kAllReduce) {
    reduce_own_share(call);
  } else {
    pull_directly(call);
  }
  statistics_.moving += Clock::now() - start;
  meeting_.finish_moving(rank_, sequence_);
  switch (meeting_.await_finish(rank_, sequence_, options.deadline, statistics_.waiting)) {
    case Waited::kReached:
      return;
    case Waited::kFailed:
      leave_failed(options);
    case Waited::kTimedOut:
      leave_timed_out(options);
  }
}

void ThreadGroup::Member::pull_directly(const Call& call) noexcept {
  for (std::size_t p = 0; p < call.pieces.size(); ++p) {
    for (std::size_t i = 0; i < inputs_.size(); ++i) inputs_[i] = post_of(i).pieces[p].in;
    pull(call, rank_, call.pieces[p], inputs_);
  }
}

void ThreadGroup::Member::reduce_own_share(const Call& call) noexcept {
  Share share = {.rank = rank_};
  for (const Piece& piece : call.pieces) share.total += piece.in.size();
  for (std::size_t p = 0; p < call.pieces.size(); ++p) {
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      inputs_[i] = post_of(i).pieces[p].in;
      outs_[i] = post_of(i).pieces[p].out;
    }
    reduce_share(call.reduction, call.pieces[p].dtype, share, inputs_, outs_, scratch_);
    share.start += call.pieces[p].in.size();
  }
}

void ThreadGroup::Member::leave_late(const Call& call, const CallOptions& options) const {
  const Failure failure = meeting_.failure();
  raise(failure.kind, messages::refused(failure, rank_, call, options), context(options));
}

// Everyone finds the mismatch, so nobody moves. The failure is for those that come back without a reset.
void ThreadGroup::Member::leave_mismatched(const CallOptions& options) {
  const std::string text = messages::mismatch(view());
  meeting_.fail({.kind = Failure::Kind::kMismatch, .rank = rank_, .text = text});
  throw CollectiveMismatch(text, context(options));
}

void ThreadGroup::Member::leave_failed(const CallOptions& options) {
  if (!meeting_.failed()) {
    meeting_.fail({.kind = Failure::Kind::kMismatch, .rank = rank_, .text = messages::someone_left(view())});
  }
  meeting_.await_quiet(rank_, sequence_);
  const Failure failure = meeting_.failure();
  raise(failure.kind, messages::released(view(), failure), context(options));
}

void ThreadGroup::Member::leave_timed_out(const CallOptions& options) {
  const std::string which = options.deadline.expired()
                                ? std::string("the call's deadline passed")
                                : fmt::format("nobody made progress for {:.3g} s",
                                              std::chrono::duration<double>(meeting_.time_without_progress()).count());
  meeting_.fail({.kind = Failure::Kind::kDeadline, .rank = rank_, .text = messages::deadline(view(), which)});
  leave_failed(options);
}

}  // namespace brigade::comm
