// The text of everything that can go wrong in a meeting. Built only then.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "comm/meeting.h"
#include "comm/post.h"

namespace brigade::comm::messages {

// Messages about operation `sequence` of one group, as participant `rank` sees it. Functions that name other
// participants may be called only by a thread that is inside that operation.
struct View {
  const Meeting& meeting;
  std::string_view group;  // its name, may be empty
  int rank = 0;
  std::uint64_t sequence = 0;
};

// `all_reduce "psum" (sum) of float32[10] at train.cpp:12`.
std::string describe(const Post& post);

// Both sides of the first difference that `view.rank` sees, or the empty string when all posts are alike.
std::string mismatch(const View& view);

// Who will never arrive, as it has left.
std::string someone_left(const View& view);

// That nothing happened for as long as is allowed, with the state of every participant.
std::string deadline(const View& view, std::string_view which_limit);

// The group's failure, as told to a participant that waited, or that came afterwards.
std::string released(const View& view, const Failure& failure);
std::string refused(const Failure& failure, int rank, const Call& call, const CallOptions& options);

// What `abort` says of `rank`.
std::string failed(std::string_view group, int rank, std::string_view reason);

}  // namespace brigade::comm::messages
