#include "comm/meeting.h"

#include <hwy/cache_control.h>  // Prefetch

#include <algorithm>
#include <utility>

namespace brigade::comm {

Meeting::Meeting(Roster& roster, std::vector<int> ranks)
    : roster_(roster), ranks_(std::move(ranks)), participants_(ranks_.size()) {}

void Meeting::arrive(int rank, std::uint64_t sequence, bool wanted) noexcept {
  // Our own store waits for the cache; the others' lines may come meanwhile.
  for (int other = 0; other < size(); ++other) hwy::Prefetch(&post(other, sequence));
  post(rank, sequence).stamp.store(sequence);
  if (!wanted || !roster_.anyone_sleeps()) return;
  // Of those that arrive together at least the last to store sees everyone.
  int next = 0;
  if (all_arrived(sequence, next)) roster_.wake_all();
}

bool Meeting::all_arrived(std::uint64_t sequence, int& next) const noexcept {
  while (next < size() && has_arrived(next, sequence)) ++next;
  return next == size();
}

Seen Meeting::look_for_arrivals(std::uint64_t sequence, int& next) const noexcept {
  const bool arrived = all_arrived(sequence, next);
  if (roster_.failed()) return judge(sequence, next);
  if (arrived) return Seen::kReached;
  if (!roster_.anything_ended()) return Seen::kNotYet;
  for (int rank = next; rank < size(); ++rank) {
    if (roster_.has_left(rank_in_roster(rank)) && !has_arrived(rank, sequence)) return Seen::kFailed;
  }
  return Seen::kNotYet;
}

// Of a group that has failed. Who saw everyone arrive before that is through, and so is everyone else then. Whoever failed
// the group over a mismatch had seen everyone, so all find the mismatch themselves.
Seen Meeting::judge(std::uint64_t sequence, int& next) const noexcept {
  const std::lock_guard lock(verdict_);
  if (condemned_ <= sequence) return Seen::kFailed;
  if (all_arrived(sequence, next)) return Seen::kReached;
  condemned_ = sequence;
  return Seen::kFailed;
}

bool Meeting::all_alike(int rank, std::uint64_t sequence) const noexcept {
  const std::uint64_t own = post(rank, sequence).fingerprint;
  for (int other = 0; other < size(); ++other) {
    if (post(other, sequence).fingerprint != own) return false;
  }
  return true;
}

std::uint64_t Meeting::finished_before(std::uint64_t sequence) const noexcept {
  std::uint64_t last = sequence;
  for (int rank = 0; rank < size(); ++rank) last = std::min(last, post(rank, sequence).finished);
  return last;
}

std::optional<std::uint32_t> Meeting::claim(int owner, std::uint64_t sequence) noexcept {
  Post& region = post(owner, sequence);
  if (region.claimed.load(std::memory_order_relaxed) >= region.slices) return std::nullopt;
  const std::uint32_t slice = region.claimed.fetch_add(1);
  return slice < region.slices ? std::optional(slice) : std::nullopt;
}

bool Meeting::all_done(std::uint64_t sequence, int& next) const noexcept {
  const auto is_done = [&](int rank) {
    const Post& region = post(rank, sequence);
    return region.done.load() == region.slices;
  };
  while (next < size() && is_done(next)) ++next;
  return next == size();
}

Seen Meeting::look_for_done(std::uint64_t sequence, int& next) const noexcept {
  if (all_done(sequence, next)) return Seen::kReached;
  if (!roster_.failed() || !roster_.is_quiet()) return Seen::kNotYet;
  // Nobody moves, and those that had not begun will see the failure: what is not done by now never will be.
  return all_done(sequence, next) ? Seen::kReached : Seen::kFailed;
}

// A plain store, as this ends every small collective. Who waits for a post to become free does not rely on being woken.
void Meeting::finish(int rank, std::uint64_t sequence) noexcept {
  at(rank).finished.store(sequence, std::memory_order_release);
  roster_.note_progress(rank_in_roster(rank));
}

bool Meeting::is_free(std::uint64_t sequence, std::uint64_t& known) const noexcept {
  if (sequence <= known + kInFlight) return true;
  known = at(0).finished.load(std::memory_order_acquire);
  for (const Participant& participant : participants_) {
    known = std::min(known, participant.finished.load(std::memory_order_acquire));
  }
  return sequence <= known + kInFlight;
}

std::optional<std::uint64_t> Meeting::last_sequence(int rank) const noexcept {
  std::uint64_t last = 0;
  for (const Post& post : at(rank).posts) last = std::max(last, post.stamp.load());
  return last > before_ ? std::optional(last) : std::nullopt;
}

void Meeting::reset(std::uint64_t last) noexcept {
  before_ = last;
  condemned_ = kNever;
  for (Participant& participant : participants_) participant.finished.store(last);
}

}  // namespace brigade::comm
