// Where the participants of one group meet: what each has posted for which operation, which slices of it are carried out,
// and who is through with it.
//
// A participant has kInFlight posts, used by turns. It may write the one of operation s again for s + kInFlight once
// everyone is through with s, and is then in nobody's way. docs/engine.md has the whole of it as a state machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "comm/post.h"
#include "comm/roster.h"

namespace brigade::comm {

class Meeting {
 public:
  // Operations that a participant may have begun and not completed.
  static constexpr std::uint64_t kInFlight = 8;

  // `ranks` are those of the roster, in this group's order.
  Meeting(Roster& roster, std::vector<int> ranks);

  Roster& roster() const noexcept { return roster_; }
  int size() const noexcept { return static_cast<int>(ranks_.size()); }
  const std::vector<int>& ranks() const noexcept { return ranks_; }
  int rank_in_roster(int rank) const noexcept { return ranks_[static_cast<std::size_t>(rank)]; }

  Post& post(int rank, std::uint64_t sequence) noexcept { return at(rank).posts[sequence % kInFlight]; }
  const Post& post(int rank, std::uint64_t sequence) const noexcept { return at(rank).posts[sequence % kInFlight]; }

  // The post of `rank` is complete. Wakes those who wait, if everybody is there now and they are `wanted`: who completes
  // the meeting may as well do the work alone and wake them then.
  void arrive(int rank, std::uint64_t sequence, bool wanted) noexcept;
  bool has_arrived(int rank, std::uint64_t sequence) const noexcept {
    return post(rank, sequence).stamp.load() >= sequence;
  }

  // kFailed also when one that has not arrived has left. All participants come to one end: what is complete for one has not
  // failed for another, whatever fails the group meanwhile. `next` is the first participant that was not seen there, from 0,
  // so that each is looked at until it is there and then no more.
  Seen look_for_arrivals(std::uint64_t sequence, int& next) const noexcept;

  // Starts to fetch the payloads of all but `rank`, so that they come while calls are compared. Once all have arrived.
  void fetch_payloads(int rank, std::uint64_t sequence, std::size_t bytes) const noexcept {
    for (int other = 0; other < size(); ++other) {
      if (other != rank) post(other, sequence).fetch_payload(bytes);
    }
  }

  // Whether everyone posted the same call as `rank`. Once all have arrived.
  bool all_alike(int rank, std::uint64_t sequence) const noexcept;

  // The last operation that everyone was through with when they arrived at this one. Once all have arrived; saves a look
  // at what every small operation writes.
  std::uint64_t finished_before(std::uint64_t sequence) const noexcept;

  // The next slice of the region of `owner` that nobody has claimed.
  std::optional<std::uint32_t> claim(int owner, std::uint64_t sequence) noexcept;
  void count_done(int owner, std::uint64_t sequence) noexcept { post(owner, sequence).done.fetch_add(1); }

  // kFailed when others abandoned the operation; nobody moves any more then.
  Seen look_for_done(std::uint64_t sequence, int& next) const noexcept;

  // `rank` will not look at the posts of `sequence` any more.
  void finish(int rank, std::uint64_t sequence) noexcept;

  // Whether the post of `sequence` may be written: everyone is through with what it held before.
  bool is_free(std::uint64_t sequence, std::uint64_t& known) const noexcept;

  // The last operation that `rank` arrived at; nullopt before its first since the reset.
  std::optional<std::uint64_t> last_sequence(int rank) const noexcept;

  // The number of an operation since the reset, from 1, as people count.
  std::uint64_t number_of(std::uint64_t sequence) const noexcept { return sequence - before_; }

  bool has_finished(int rank, std::uint64_t sequence) const noexcept { return at(rank).finished.load() >= sequence; }

  // The next operation is the one after `last`.
  void reset(std::uint64_t last) noexcept;

 private:
  static constexpr std::uint64_t kNever = std::numeric_limits<std::uint64_t>::max();

  struct alignas(kCacheLine) Participant {
    Post posts[kInFlight];
    alignas(kCacheLine) std::atomic<std::uint64_t> finished{0};
  };

  Participant& at(int rank) noexcept { return participants_[static_cast<std::size_t>(rank)]; }
  const Participant& at(int rank) const noexcept { return participants_[static_cast<std::size_t>(rank)]; }

  bool all_arrived(std::uint64_t sequence, int& next) const noexcept;
  Seen judge(std::uint64_t sequence, int& next) const noexcept;
  bool all_done(std::uint64_t sequence, int& next) const noexcept;

  Roster& roster_;
  const std::vector<int> ranks_;
  std::uint64_t before_ = 0;  // the last operation before the reset
  std::vector<Participant> participants_;

  // The first operation that failed as not everyone had arrived. Whoever arrives later finds it failed, too.
  mutable std::mutex verdict_;
  mutable std::uint64_t condemned_ = kNever;
};

}  // namespace brigade::comm
