#include "comm/meeting.h"

#include <hwy/cache_control.h>  // Pause
#include <sched.h>              // sched_getcpu

#include <algorithm>
#include <utility>

namespace brigade::comm {
namespace {

using std::chrono::nanoseconds;

// Looks before the first reading of the clock, which costs as much as an exchange between two cores.
constexpr int kBriefLooks = 64;

// Looks between readings of the clock.
constexpr int kLooksPerReading = 32;

// A sleeper looks for progress of others this often within the time it grants them.
constexpr int kLooksPerLimit = 8;

constexpr nanoseconds kUnlimited = nanoseconds::max();

}  // namespace

Meeting::Meeting(int size, nanoseconds time_without_progress, bool spin)
    : time_without_progress_(time_without_progress), spin_(spin), participants_(static_cast<std::size_t>(size)) {}

void Meeting::arrive(int rank, std::uint64_t sequence) noexcept {
  if (spin_) at(rank).core.store(sched_getcpu(), std::memory_order_relaxed);
  // Our own store waits for the cache; the others' lines may come meanwhile.
  for (int other = 0; other < size(); ++other) hwy::Prefetch(&post(other, sequence));
  announce(rank, sequence, Step::kArrived);
}

Waited Meeting::await_arrivals(int rank, std::uint64_t sequence, Deadline deadline, nanoseconds& waited) noexcept {
  int next = 0;
  return wait(
      rank, [&] { return look_for_arrivals(sequence, next); }, time_without_progress_, deadline, waited);
}

bool Meeting::begin_moving(int rank, std::uint64_t sequence) noexcept {
  post(rank, sequence).phase.store(phase_of(sequence, Step::kMoving));
  if (!failed()) return true;
  announce(rank, sequence, Step::kAbandoned);
  return false;
}

void Meeting::finish_moving(int rank, std::uint64_t sequence) noexcept { announce(rank, sequence, Step::kFinished); }

Waited Meeting::await_finish(int rank, std::uint64_t sequence, Deadline deadline, nanoseconds& waited) noexcept {
  int next = 0;
  return wait(
      rank, [&] { return look_for_finish(sequence, next); }, time_without_progress_, deadline, waited);
}

void Meeting::await_quiet(int rank, std::uint64_t sequence) noexcept {
  nanoseconds waited{0};
  wait(
      rank, [&] { return is_quiet(sequence) ? Seen::kReached : Seen::kNotYet; }, kUnlimited, Deadline::never(), waited);
}

void Meeting::fail(Failure failure) noexcept {
  {
    const std::lock_guard lock(failure_mutex_);
    if (failed()) return;
    failure_ = std::move(failure);
    condition_.fetch_or(kFailed);
  }
  events_.notify_all();
}

Failure Meeting::failure() const {
  const std::lock_guard lock(failure_mutex_);
  return failure_;
}

void Meeting::leave(int rank) noexcept {
  at(rank).left.store(true);
  condition_.fetch_or(kSomeoneLeft);
  events_.notify_all();
}

std::uint64_t Meeting::last_sequence(int rank) const noexcept {
  return sequence_of(std::max(phase(rank, 0), phase(rank, 1)));
}

std::optional<nanoseconds> Meeting::waiting_for(int rank) const noexcept {
  const Clock::rep since = at(rank).waits_since.load();
  if (since == 0) return std::nullopt;
  return Clock::now().time_since_epoch() - Clock::duration(since);
}

void Meeting::reset() noexcept {
  const std::lock_guard lock(failure_mutex_);
  for (Participant& participant : participants_) {
    for (Post& post : participant.posts) post.phase.store(0);
    participant.left.store(false);
    participant.waits_since.store(0);
  }
  failure_ = {};
  condition_.store(0);
}

// `next` is the first participant that was not seen there, so that each is looked at until it is there and then no
// more.
bool Meeting::all_reached(std::uint64_t sequence, Step step, int& next) const noexcept {
  while (next < size() && phase(next, sequence) >= phase_of(sequence, step)) ++next;
  return next == size();
}

Meeting::Seen Meeting::look_for_arrivals(std::uint64_t sequence, int& next) const noexcept {
  if (all_reached(sequence, Step::kArrived, next)) return Seen::kReached;
  const std::uint32_t condition = condition_.load();
  if (condition == 0) return Seen::kNotYet;
  // Whoever failed a group over a mismatch had seen everyone arrive; so does this look, and finds the mismatch itself.
  if (all_reached(sequence, Step::kArrived, next)) return Seen::kReached;
  if ((condition & kFailed) != 0) return Seen::kFailed;
  for (int rank = next; rank < size(); ++rank) {
    if (!has_left(rank)) continue;
    if (phase(rank, sequence) < phase_of(sequence, Step::kArrived)) return Seen::kFailed;
  }
  return Seen::kNotYet;
}

Meeting::Seen Meeting::look_for_finish(std::uint64_t sequence, int& next) const noexcept {
  while (next < size() && phase(next, sequence) >= phase_of(sequence, Step::kFinished)) ++next;
  if (next == size()) return Seen::kReached;
  if (!failed() || !is_quiet(sequence)) return Seen::kNotYet;
  // Nobody moves, and those that had not begun will see the failure: what has not finished by now never will.
  return all_reached(sequence, Step::kFinished, next) ? Seen::kReached : Seen::kFailed;
}

bool Meeting::is_quiet(std::uint64_t sequence) const noexcept {
  for (int rank = 0; rank < size(); ++rank) {
    if (phase(rank, sequence) == phase_of(sequence, Step::kMoving)) return false;
  }
  return true;
}

// On a busy machine the scheduler may put two participants on one core, where one that spins keeps the other away.
bool Meeting::spinning_may_help(int rank) const noexcept {
  if (!spin_) return false;
  const int core = sched_getcpu();
  for (int other = 0; other < size(); ++other) {
    if (other != rank && at(other).core.load(std::memory_order_relaxed) == core) return false;
  }
  return true;
}

// Only who makes a meeting complete wakes the sleepers; of those that arrive together at least the last to store sees
// everyone. After a failure sleepers wait for less than everyone.
void Meeting::announce(int rank, std::uint64_t sequence, Step step) noexcept {
  post(rank, sequence).phase.store(phase_of(sequence, step));
  if (!events_.anyone_sleeps()) return;
  int next = 0;
  if (all_reached(sequence, step, next) || condition_.load() != 0) events_.notify_all();
}

// Changes whenever anyone arrives, moves, finishes or leaves.
std::uint64_t Meeting::progress() const noexcept {
  std::uint64_t sum = 0;
  for (const Participant& participant : participants_) {
    sum += participant.posts[0].phase.load() + participant.posts[1].phase.load() + (participant.left.load() ? 1 : 0);
  }
  return sum;
}

template <class Look>
Waited Meeting::wait(int rank, Look look, nanoseconds limit, Deadline deadline, nanoseconds& waited) noexcept {
  const int brief_looks = spin_ ? kBriefLooks : 1;
  for (int i = 0; i < brief_looks; ++i) {
    const Seen seen = look();
    if (seen != Seen::kNotYet) return seen == Seen::kReached ? Waited::kReached : Waited::kFailed;
    if (spin_) hwy::Pause();
  }
  const Clock::time_point start = Clock::now();
  at(rank).waits_since.store(start.time_since_epoch().count());
  const Waited result = wait_long(rank, look, limit, deadline);
  at(rank).waits_since.store(0);
  waited += Clock::now() - start;
  return result;
}

template <class Look>
Waited Meeting::wait_long(int rank, Look look, nanoseconds limit, Deadline deadline) noexcept {
  const Clock::time_point start(Clock::duration(at(rank).waits_since.load()));
  const auto waited = [](Seen seen) { return seen == Seen::kReached ? Waited::kReached : Waited::kFailed; };
  std::uint64_t last_progress = progress();
  Clock::time_point last_change = start;

  for (Clock::time_point now = start; spinning_may_help(rank) && now - start < std::min(kSpinTime, limit);
       now = Clock::now()) {
    for (int i = 0; i < kLooksPerReading; ++i) {
      if (const Seen seen = look(); seen != Seen::kNotYet) return waited(seen);
      hwy::Pause();
    }
    if (deadline.expired()) return Waited::kTimedOut;
  }

  while (true) {
    EventCount::Sleeper sleeper(events_);
    if (const Seen seen = look(); seen != Seen::kNotYet) return waited(seen);
    const Clock::time_point now = Clock::now();
    if (const std::uint64_t seen_progress = progress(); seen_progress != last_progress) {
      last_progress = seen_progress;
      last_change = now;
    }
    const nanoseconds idle = now - last_change;
    if (idle >= limit || deadline.expired()) return Waited::kTimedOut;
    sleeper.sleep(std::min({limit - idle, limit / kLooksPerLimit, deadline.remaining()}));
  }
}

}  // namespace brigade::comm
