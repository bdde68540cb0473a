#include "brigade/comm/thread_group.h"

#include <fmt/format.h>

#include <exception>
#include <utility>
#include <vector>

#include "brigade/base/error.h"
#include "comm/meeting.h"
#include "comm/member.h"
#include "comm/messages.h"

namespace brigade::comm {

class ThreadGroup::State {
 public:
  State(int size, Options options)
      : name(std::move(options.name)), meeting(size, options.time_without_progress, options.spin) {
    for (int rank = 0; rank < size; ++rank) members.push_back(std::make_unique<Member>(meeting, name, rank));
  }

  const std::string name;
  Meeting meeting;
  std::vector<std::unique_ptr<Member>> members;
};

ThreadGroup::ThreadGroup(int size, Options options) {
  if (size < 1) throw InvalidArgument(fmt::format("a group needs at least one participant (got {})", size));
  state_ = std::make_unique<State>(size, std::move(options));
}

ThreadGroup::~ThreadGroup() = default;

int ThreadGroup::size() const noexcept { return state_->meeting.size(); }

Group& ThreadGroup::member(int rank) {
  if (rank < 0 || rank >= size()) {
    throw InvalidArgument(fmt::format("rank {} is outside 0 to {}", rank, size() - 1));
  }
  return *state_->members[static_cast<std::size_t>(rank)];
}

void ThreadGroup::abort(int rank, const std::string& reason) noexcept {
  Failure failure = {.kind = Failure::Kind::kAborted, .rank = rank, .text = {}};
  try {
    failure.text = messages::failed(state_->name, rank, reason);
  } catch (const std::exception&) {
    // Out of memory: that the group has failed matters more than why.
  }
  state_->meeting.fail(std::move(failure));
}

void ThreadGroup::leave(int rank) noexcept { state_->meeting.leave(rank); }

void ThreadGroup::reset() noexcept {
  state_->meeting.reset();
  for (const std::unique_ptr<Member>& member : state_->members) member->reset();
}

}  // namespace brigade::comm
