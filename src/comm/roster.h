// What the participants of a group, and of all groups among some of them, share: whether it has failed, who has left, who
// touches others' memory, who waits where, and sleeping.
//
// Why nobody's memory is touched after it left with an exception. A participant that is about to move data announces it
// and then looks whether the group has failed; if so, it abandons. A participant that leaves does so after the group has
// failed, and waits for everyone that it sees moving. Stores and loads are sequentially consistent, so either the mover
// sees the failure or the leaver sees the mover. Moving waits for nothing, so the leaver's wait is bounded by copying and
// adding.
#pragma once

#include <hwy/cache_control.h>  // Pause

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "brigade/base/deadline.h"
#include "brigade/base/event_count.h"
#include "brigade/comm/group.h"
#include "brigade/comm/thread_group.h"
#include "comm/copy.h"

namespace brigade::comm {

class Meeting;

// Why a group can do nothing more until it is reset.
struct Failure {
  enum class Kind { kAborted, kMismatch, kDeadline };

  Kind kind = Kind::kAborted;
  int rank = 0;      // who failed, or noticed
  std::string text;  // complete, but for what the reader of the message was doing
};

// What a participant that cannot go on sees when it looks.
enum class Seen { kNotYet, kReached, kFailed, kMismatch };

class Roster {
 public:
  using Clock = Deadline::Clock;

  // Where a participant waits: for the others to arrive at an operation of a meeting. No meeting: for something else, which
  // comes without its help.
  struct Place {
    const Meeting* meeting = nullptr;
    std::uint64_t sequence = 0;

    bool operator==(const Place&) const = default;
  };

  Roster(int size, ThreadGroup::Options options);

  int size() const noexcept { return static_cast<int>(seats_.size()); }
  const std::string& name() const noexcept { return options_.name; }
  bool spins() const noexcept { return options_.spin; }
  std::chrono::nanoseconds time_without_progress() const noexcept { return options_.time_without_progress; }

  // The first failure stays. `make_text` is called once everyone can see that the group has failed: from then on nobody
  // writes a post again that a text may tell of.
  template <class MakeText>
  void fail(Failure::Kind kind, int rank, MakeText make_text) noexcept;
  bool failed() const noexcept { return (condition_.load() & kFailed) != 0; }
  Failure failure() const;

  // `rank` will do nothing more.
  void leave(int rank) noexcept;
  bool has_left(int rank) const noexcept { return at(rank).left.load(); }

  // Whether somebody failed or left. One load, for those that wait.
  bool anything_ended() const noexcept { return condition_.load() != 0; }

  // False when the group has failed: then nobody's memory may be touched.
  bool begin_moving(int rank) noexcept;
  void finish_moving(int rank) noexcept;
  bool is_moving(int rank) const noexcept { return at(rank).moving.load(); }
  bool is_quiet() const noexcept;

  // `rank` has done something that others can see. An arrival also says which core it is on.
  void note_progress(int rank) noexcept;
  void note_arrival(int rank) noexcept;

  // Call after a sequentially consistent change that somebody may sleep for.
  bool anyone_sleeps() const noexcept { return events_.anyone_sleeps(); }
  void wake_all() noexcept { events_.notify_all(); }

  // How long nobody has made progress, as far as one participant has looked. What passes between two looks counts as no
  // more than its longest sleep: if it is more, this process was stopped, and the others with it.
  class Idleness {
   public:
    std::chrono::nanoseconds look(const Roster& roster, Clock::time_point now) noexcept {
      const std::uint64_t progress = roster.progress();
      time_ =
          progress == progress_ ? time_ + std::min(now - last_look_, roster.longest_sleep()) : Clock::duration::zero();
      progress_ = progress;
      last_look_ = now;
      return time_;
    }

   private:
    std::optional<std::uint64_t> progress_;
    Clock::time_point last_look_;
    Clock::duration time_{0};
  };

  struct Patience {
    std::chrono::nanoseconds limit;  // without progress of anyone
    Deadline deadline = Deadline::never();
    std::chrono::nanoseconds nap = std::chrono::nanoseconds::max();  // longest sleep, for what nobody is woken for
  };

  // Calls look() until it returns something else than kNotYet, or nullopt once nobody has made progress for the limit or the
  // deadline has passed. Spins for a while where that may help, then sleeps; `before_sleeping` is called each time, after
  // the place was published. Adds to the statistics of `rank` what was worth a look at the clock.
  template <class Look, class BeforeSleeping>
  std::optional<Seen> wait(int rank, Place place, Look look, Patience patience, BeforeSleeping before_sleeping);

  // Where `rank` waits, if it does, and a number that changes whenever it begins or stops.
  struct Waiting {
    std::uint64_t version = 0;
    std::optional<Place> place;
  };
  Waiting waiting(int rank) const noexcept;
  std::optional<std::chrono::nanoseconds> waiting_for(int rank) const noexcept;

  // Of `rank`'s own thread.
  Statistics& statistics(int rank) noexcept { return at(rank).statistics; }

  // Only when nobody is inside an operation.
  void reset() noexcept;

 private:
  struct alignas(kCacheLine) Seat {
    std::atomic<bool> left{false};
    std::atomic<bool> moving{false};
    std::atomic<int> core{-1};  // where it last arrived or looked from
    std::atomic<std::uint64_t> progress{0};

    // Odd while it waits. The place belongs to the version before and after which it is read.
    std::atomic<std::uint64_t> waits{0};
    std::atomic<const Meeting*> meeting{nullptr};
    std::atomic<std::uint64_t> sequence{0};
    std::atomic<Clock::rep> since{0};

    alignas(kCacheLine) Statistics statistics;
  };

  static constexpr std::uint32_t kFailed = 1;
  static constexpr std::uint32_t kSomeoneLeft = 2;

  // Looks before the first reading of the clock, which costs as much as an exchange between two cores.
  static constexpr int kBriefLooks = 64;
  // Looks between readings of the clock.
  static constexpr int kLooksPerReading = 32;
  // A sleeper looks for progress of others this often within the time that they are granted.
  static constexpr int kLooksPerLimit = 8;
  std::chrono::nanoseconds longest_sleep() const noexcept { return options_.time_without_progress / kLooksPerLimit; }

  Seat& at(int rank) noexcept { return seats_[static_cast<std::size_t>(rank)]; }
  const Seat& at(int rank) const noexcept { return seats_[static_cast<std::size_t>(rank)]; }

  void begin_waiting(int rank, Place place, Clock::time_point now) noexcept;
  void end_waiting(int rank) noexcept;
  bool spinning_may_help(int rank) noexcept;
  std::uint64_t progress() const noexcept;

  const ThreadGroup::Options options_;
  std::vector<Seat> seats_;

  // Read by every wait, written when something ends.
  alignas(kCacheLine) std::atomic<std::uint32_t> condition_{0};
  mutable std::mutex failure_mutex_;
  Failure failure_;

  alignas(kCacheLine) EventCount events_;
};

template <class MakeText>
void Roster::fail(Failure::Kind kind, int rank, MakeText make_text) noexcept {
  {
    const std::lock_guard lock(failure_mutex_);
    if (failed()) return;
    failure_ = {.kind = kind, .rank = rank, .text = {}};
    condition_.fetch_or(kFailed);
    try {
      failure_.text = make_text();
    } catch (const std::exception&) {
      // Out of memory: that the group has failed matters more than why.
    }
  }
  events_.notify_all();
}

template <class Look, class BeforeSleeping>
std::optional<Seen> Roster::wait(int rank, Place place, Look look, Patience patience, BeforeSleeping before_sleeping) {
  const auto [limit, deadline, nap] = patience;
  for (int i = options_.spin ? kBriefLooks : 1; i > 0; --i) {
    if (const Seen seen = look(); seen != Seen::kNotYet) return seen;
    if (options_.spin) hwy::Pause();
  }

  const Clock::time_point start = Clock::now();
  begin_waiting(rank, place, start);
  struct Ended {
    Roster& roster;
    int rank;
    Clock::time_point start;
    std::chrono::nanoseconds moving_before;
    ~Ended() {
      roster.end_waiting(rank);
      // What was carried out meanwhile is no waiting.
      Statistics& spent = roster.statistics(rank);
      spent.waiting += (Clock::now() - start) - (spent.moving - moving_before);
    }
  } const ended{*this, rank, start, statistics(rank).moving};

  for (Clock::time_point now = start; now - start < std::min(kSpinTime, limit) && spinning_may_help(rank);
       now = Clock::now()) {
    for (int i = 0; i < kLooksPerReading; ++i) {
      if (const Seen seen = look(); seen != Seen::kNotYet) return seen;
      hwy::Pause();
    }
    if (deadline.expired()) return std::nullopt;
  }

  for (int i = options_.spin ? 0 : kYieldsBeforeSleep; i > 0; --i) {
    std::this_thread::yield();
    if (const Seen seen = look(); seen != Seen::kNotYet) return seen;
  }

  Idleness idleness;
  while (true) {
    EventCount::Sleeper sleeper(events_);
    before_sleeping();
    if (const Seen seen = look(); seen != Seen::kNotYet) return seen;
    const std::chrono::nanoseconds idle = idleness.look(*this, Clock::now());
    if (idle >= limit || deadline.expired()) return std::nullopt;
    sleeper.sleep(std::min({nap, limit - idle, longest_sleep(), deadline.remaining()}));
  }
}

}  // namespace brigade::comm
