// The text of everything that can go wrong in a meeting. Built only then.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "comm/meeting.h"
#include "comm/post.h"

namespace brigade::comm::messages {

// Messages about operation `sequence` of one group, as its participant `rank` sees it. Functions that name other
// participants may be called only by a thread that is inside that operation. Ranks in messages are those of the roster.
struct View {
  const Meeting& meeting;
  int rank = 0;
  std::uint64_t sequence = 0;
};

// Participant `rank` of the roster waits for others to arrive at an operation.
struct Wait {
  int rank = 0;
  const Meeting* meeting = nullptr;
  std::uint64_t sequence = 0;
};

// `all_reduce "psum" (sum) of float32[10] at train.cpp:12`.
std::string describe(const Post& post);

// Both sides of the first difference that `view.rank` sees. Once all_alike() has said that there is one.
struct Mismatch {
  std::string text;
  std::optional<std::size_t> piece = {};  // where it is
};
Mismatch mismatch(const View& view);

// Who will never arrive, as it has left.
std::string someone_left(const View& view);

// That the call's own deadline has passed, or that nothing happened for as long as is allowed, with the state of every
// participant.
std::string deadline(const View& view, bool of_call, std::chrono::nanoseconds time_without_progress);

// That these wait for one another, each for the next and the last for the first.
std::string deadlock(std::string_view group, const std::vector<Wait>& circle);

// That a participant gave up the handle of an operation that was not complete.
std::string dropped(const View& view);

// The group's failure, as told to a participant that waited, or that came afterwards.
std::string released(const View& view, const Failure& failure);
std::string refused(const Failure& failure, int rank, const Call& call, const CallOptions& options);

// What `abort` says of `rank`.
std::string failed(std::string_view group, int rank, std::string_view reason);

}  // namespace brigade::comm::messages
