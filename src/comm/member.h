// One participant of a group of threads. Every operation takes the same steps: begin() posts it, advance() carries it on as
// far as it goes without waiting, and finish() waits for what is missing.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <source_location>
#include <vector>

#include "brigade/base/error.h"
#include "brigade/comm/thread_group.h"
#include "comm/checks.h"
#include "comm/meeting.h"
#include "comm/messages.h"
#include "comm/moves.h"

namespace brigade::comm {

class Subgroups;

class ThreadGroup::Member final : public Group {
 public:
  // `meeting` and `subgroups` outlive the member; `rank` is that in the meeting.
  Member(Meeting& meeting, Subgroups& subgroups, int rank);

  int rank() const noexcept override { return rank_; }
  int size() const noexcept override { return meeting_.size(); }
  const Capabilities& capabilities() const noexcept override { return kernel_capabilities(); }

  void run(const Call& call, const CallOptions& options) override;
  Group& among(std::span<const int> ranks) override;

  Statistics statistics() const noexcept override { return roster().statistics(seat_); }
  void reset_statistics() noexcept override { roster().statistics(seat_) = {}; }

  // Carries on whatever has been begun. Stops where it would have to wait.
  Seen advance() noexcept;

  // What went wrong in the oldest operation that is not complete, after advance() gave kMismatch.
  void fail_mismatched() noexcept;

  std::uint64_t last_begun() const noexcept { return last_begun_; }
  bool has_completed_all() const noexcept { return completed_ == last_begun_; }

  // Gives up what has been begun and is not complete: the group fails, and on return nobody touches its memory any more.
  void drop_all() noexcept;

  // The group has been reset; the next operation is the one after `last`.
  void reset(std::uint64_t last) noexcept;

 private:
  // Memory that stands in for inputs which are overwritten while others still read them.
  using Staging = std::unique_ptr<std::byte[]>;

  // What this participant alone knows of an operation that it has begun and not completed.
  struct Begun {
    Deadline deadline = Deadline::never();
    std::size_t bytes = 0;  // of its payload, or what that would be
    bool by_payload = false;
    Staging staging;
  };

  std::uint64_t begin(const Call& call, const CallOptions& options) override;
  void finish(std::uint64_t ticket) override;
  bool try_finish(std::uint64_t ticket) override;
  void abandon(std::uint64_t ticket) noexcept override;

  enum class Next { kWaits, kGoesOn };

  std::uint64_t begin(const Call& call, const CallOptions& options, Next next);
  void await_free_post(std::uint64_t sequence, const CallOptions& options);
  void prepare(std::uint64_t sequence, const Call& call, const CallOptions& options);
  void stage_inputs(Post& post, Begun& own) const;
  void run_alone(const Call& call) noexcept;
  void keep_leaves(std::span<const std::int32_t> more);
  Seen meet_leaves(std::uint64_t sequence) noexcept;
  Spans spans_of(const Call& call) noexcept;

  Seen carry_on(std::uint64_t sequence) noexcept;
  void move_payloads(std::uint64_t sequence) noexcept;
  void carry_out_slices(std::uint64_t sequence) noexcept;
  bool is_small(std::uint64_t sequence) const noexcept;
  // Looks at an operation, a moment's worth, before the small regions of others are looked at.
  static constexpr int kLooksAlone = 32;
  bool looks_at_all(std::uint64_t sequence) noexcept;
  void carry_out(std::uint64_t sequence, int owner, std::uint32_t claim) noexcept;
  void note_in_flight(bool in_flight);

  template <class Look>
  std::optional<Seen> wait_for(std::uint64_t sequence, Look look, Roster::Patience patience);
  void advance_others() noexcept;
  void await_quiet() noexcept;

  [[noreturn]] void leave_late(const Call& call, const CallOptions& options) const;
  void give_up(std::uint64_t ticket, std::optional<Seen> seen, Deadline deadline, std::source_location site);

  Roster& roster() const noexcept { return meeting_.roster(); }
  std::uint64_t oldest() const noexcept { return completed_ + 1; }
  // The operation that others have to go on with: the oldest, or when all are complete here, the one whose post is needed.
  std::uint64_t stuck_at() const noexcept {
    return completed_ < last_begun_ ? oldest() : oldest() - Meeting::kInFlight;
  }
  Begun& begun(std::uint64_t sequence) noexcept { return begun_[sequence % Meeting::kInFlight]; }
  const Post& post_of(std::size_t rank, std::uint64_t sequence) const noexcept {
    return meeting_.post(static_cast<int>(rank), sequence);
  }
  messages::View view(std::uint64_t sequence) const noexcept {
    return {.meeting = meeting_, .rank = rank_, .sequence = sequence};
  }
  Caller caller(std::source_location site) const { return {.seat = seat_, .site = site}; }

  Meeting& meeting_;
  Subgroups& subgroups_;
  const int rank_;
  const int seat_;                   // its rank in the roster
  const std::size_t payload_limit_;  // bytes of an operation that moves copies in the posts

  std::uint64_t last_begun_ = 0;
  std::uint64_t completed_ = 0;
  std::uint64_t known_finished_ = 0;  // by everyone
  std::array<Begun, Meeting::kInFlight> begun_;

  // How far the oldest operation is.
  bool met_ = false;
  int regions_ = 0;  // counted from its own, in which it found nothing left to carry out
  int looks_ = 0;    // at the oldest, since everyone had arrived
  int next_ = 0;     // the first participant that has not been seen to have come, or its region to be done

  bool is_in_flight_ = false;  // among subgroups_.in_flight()
  bool has_thrown_ = false;    // memory of what was begun may be gone
  Roster::Idleness polling_;   // since it was last seen by try_finish()

  // One entry per participant, kept so that operations allocate nothing.
  std::vector<ConstBytes> inputs_;
  std::vector<Bytes> outputs_;
  // Of the oldest operation, where it has leaves: an entry per addend.
  std::vector<ConstBytes> addends_;
  std::vector<std::int32_t> leaves_;
};

}  // namespace brigade::comm
