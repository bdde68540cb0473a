// Where the participants of a group meet: who has arrived at which operation, who still touches others' memory, and
// whether the group has failed. No data passes through here.
//
// A participant has two posts, used by turns. It cannot begin operation s + 2 before everyone has arrived at s + 1, and
// by then nobody reads posts of s.
//
// Why nobody's memory is touched after it left with an exception. A participant that is about to move data announces
// kMoving and then looks whether the group has failed; if so, it abandons. A participant that leaves does so after the
// group has failed, and looks at everyone's phase first: it waits for those that it sees moving. Stores and loads are
// sequentially consistent, so either the mover sees the failure or the leaver sees the mover. Moving waits for nothing,
// so the leaver's wait is bounded by copying and adding.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "brigade/base/deadline.h"
#include "brigade/base/event_count.h"
#include "comm/post.h"

namespace brigade::comm {

// Why a group can do nothing more until it is reset.
struct Failure {
  enum class Kind { kAborted, kMismatch, kDeadline };

  Kind kind = Kind::kAborted;
  int rank = 0;      // who failed, or noticed
  std::string text;  // complete, but for what the reader of the message was doing
};

enum class Waited { kReached, kFailed, kTimedOut };

class Meeting {
 public:
  Meeting(int size, std::chrono::nanoseconds time_without_progress, bool spin);

  int size() const noexcept { return static_cast<int>(participants_.size()); }
  std::chrono::nanoseconds time_without_progress() const noexcept { return time_without_progress_; }

  Post& post(int rank, std::uint64_t sequence) noexcept { return at(rank).posts[sequence % 2]; }
  const Post& post(int rank, std::uint64_t sequence) const noexcept { return at(rank).posts[sequence % 2]; }

  // The post of `rank` is complete.
  void arrive(int rank, std::uint64_t sequence) noexcept;

  // kFailed also when one that has not arrived has left the group. Adds to `waited` what was worth a look at the clock.
  Waited await_arrivals(int rank, std::uint64_t sequence, Deadline deadline, std::chrono::nanoseconds& waited) noexcept;

  // False when the group has failed: then nobody's spans may be touched, and await_quiet() comes next.
  bool begin_moving(int rank, std::uint64_t sequence) noexcept;
  void finish_moving(int rank, std::uint64_t sequence) noexcept;

  // kFailed when others abandoned the operation; nobody moves any more then.
  Waited await_finish(int rank, std::uint64_t sequence, Deadline deadline, std::chrono::nanoseconds& waited) noexcept;

  // After a failure: returns once nobody touches others' spans.
  void await_quiet(int rank, std::uint64_t sequence) noexcept;

  // The first failure stays.
  void fail(Failure failure) noexcept;
  bool failed() const noexcept { return (condition_.load() & kFailed) != 0; }
  Failure failure() const;

  void leave(int rank) noexcept;
  bool has_left(int rank) const noexcept { return at(rank).left.load(); }

  // The last operation that `rank` arrived at; 0 before the first.
  std::uint64_t last_sequence(int rank) const noexcept;
  // How long `rank` has been waiting, if it has for long enough to look at the clock.
  std::optional<std::chrono::nanoseconds> waiting_for(int rank) const noexcept;

  void reset() noexcept;

 private:
  using Clock = Deadline::Clock;

  enum class Seen { kNotYet, kReached, kFailed };

  struct alignas(kCacheLine) Participant {
    Post posts[2];
    alignas(kCacheLine) std::atomic<bool> left{false};
    std::atomic<Clock::rep> waits_since{0};  // 0 when it does not wait
    std::atomic<int> core{-1};               // where it was when it last arrived
  };

  static constexpr std::uint32_t kFailed = 1;
  static constexpr std::uint32_t kSomeoneLeft = 2;

  Participant& at(int rank) noexcept { return participants_[static_cast<std::size_t>(rank)]; }
  const Participant& at(int rank) const noexcept { return participants_[static_cast<std::size_t>(rank)]; }
  std::uint64_t phase(int rank, std::uint64_t sequence) const noexcept { return post(rank, sequence).phase.load(); }

  bool all_reached(std::uint64_t sequence, Step step, int& next) const noexcept;
  Seen look_for_arrivals(std::uint64_t sequence, int& next) const noexcept;
  Seen look_for_finish(std::uint64_t sequence, int& next) const noexcept;
  bool is_quiet(std::uint64_t sequence) const noexcept;
  bool spinning_may_help(int rank) const noexcept;
  void announce(int rank, std::uint64_t sequence, Step step) noexcept;
  std::uint64_t progress() const noexcept;

  template <class Look>
  Waited wait(int rank, Look look, std::chrono::nanoseconds limit, Deadline deadline,
              std::chrono::nanoseconds& waited) noexcept;
  template <class Look>
  Waited wait_long(int rank, Look look, std::chrono::nanoseconds limit, Deadline deadline) noexcept;

  const std::chrono::nanoseconds time_without_progress_;
  const bool spin_;
  std::vector<Participant> participants_;

  // Read by every wait, written when something ends.
  alignas(kCacheLine) std::atomic<std::uint32_t> condition_{0};
  mutable std::mutex failure_mutex_;
  Failure failure_;

  alignas(kCacheLine) EventCount events_;
};

}  // namespace brigade::comm
