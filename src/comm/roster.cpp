#include "comm/roster.h"

#include <sched.h>  // sched_getcpu

#include <utility>

namespace brigade::comm {

Roster::Roster(int size, ThreadGroup::Options options)
    : options_(std::move(options)), seats_(static_cast<std::size_t>(size)) {}

Failure Roster::failure() const {
  const std::lock_guard lock(failure_mutex_);
  return failure_;
}

void Roster::leave(int rank) noexcept {
  at(rank).left.store(true);
  condition_.fetch_or(kSomeoneLeft);
  events_.notify_all();
}

bool Roster::begin_moving(int rank) noexcept {
  at(rank).moving.store(true);
  if (!failed()) return true;
  finish_moving(rank);
  return false;
}

// After a failure others may sleep until everything is quiet.
void Roster::finish_moving(int rank) noexcept {
  at(rank).moving.store(false);
  if (anything_ended()) events_.notify_all();
}

bool Roster::is_quiet() const noexcept {
  return std::none_of(seats_.begin(), seats_.end(), [](const Seat& seat) { return seat.moving.load(); });
}

void Roster::note_progress(int rank) noexcept {
  std::atomic<std::uint64_t>& own = at(rank).progress;  // nobody else writes it
  own.store(own.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
}

void Roster::note_arrival(int rank) noexcept {
  if (options_.spin) at(rank).core.store(sched_getcpu(), std::memory_order_relaxed);
  note_progress(rank);
}

// Changes whenever anyone makes progress or leaves.
std::uint64_t Roster::progress() const noexcept {
  std::uint64_t sum = 0;
  for (const Seat& seat : seats_) sum += seat.progress.load(std::memory_order_relaxed) + (seat.left.load() ? 1 : 0);
  return sum;
}

void Roster::begin_waiting(int rank, Place place, Clock::time_point now) noexcept {
  Seat& seat = at(rank);
  seat.meeting.store(place.meeting);
  seat.sequence.store(place.sequence);
  seat.since.store(now.time_since_epoch().count());
  seat.waits.store(seat.waits.load(std::memory_order_relaxed) + 1);
}

void Roster::end_waiting(int rank) noexcept {
  Seat& seat = at(rank);
  seat.waits.store(seat.waits.load(std::memory_order_relaxed) + 1);
}

Roster::Waiting Roster::waiting(int rank) const noexcept {
  const Seat& seat = at(rank);
  const std::uint64_t version = seat.waits.load();
  if (version % 2 == 0) return {.version = version, .place = std::nullopt};
  const Place place = {.meeting = seat.meeting.load(), .sequence = seat.sequence.load()};
  if (seat.waits.load() != version) return {.version = version + 1, .place = std::nullopt};
  return {.version = version, .place = place};
}

std::optional<std::chrono::nanoseconds> Roster::waiting_for(int rank) const noexcept {
  if (!waiting(rank).place) return std::nullopt;
  return Clock::now().time_since_epoch() - Clock::duration(at(rank).since.load());
}

// On a busy machine the scheduler may put two participants on one core, where one that spins keeps the other away.
bool Roster::spinning_may_help(int rank) noexcept {
  if (!options_.spin) return false;
  const int core = sched_getcpu();
  at(rank).core.store(core, std::memory_order_relaxed);
  for (int other = 0; other < size(); ++other) {
    if (other != rank && at(other).core.load(std::memory_order_relaxed) == core) return false;
  }
  return true;
}

void Roster::reset() noexcept {
  const std::lock_guard lock(failure_mutex_);
  for (Seat& seat : seats_) {
    seat.left.store(false);
    seat.moving.store(false);
    seat.waits.store(0);
  }
  failure_ = {};
  condition_.store(0);
}

}  // namespace brigade::comm
