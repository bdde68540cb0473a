#include "brigade/comm/thread_group.h"

#include <fmt/format.h>

#include <utility>

#include "brigade/base/error.h"
#include "comm/messages.h"
#include "comm/subgroups.h"

namespace brigade::comm {

ThreadGroup::ThreadGroup(int size, Options options) {
  if (size < 1) throw InvalidArgument(fmt::format("a group needs at least one participant (got {})", size));
  subgroups_ = std::make_unique<Subgroups>(size, std::move(options));
}

ThreadGroup::~ThreadGroup() = default;

int ThreadGroup::size() const noexcept { return subgroups_->roster().size(); }

Group& ThreadGroup::member(int rank) {
  if (rank < 0 || rank >= size()) {
    throw InvalidArgument(fmt::format("rank {} is outside 0 to {}", rank, size() - 1));
  }
  return subgroups_->member(rank);
}

void ThreadGroup::abort(int rank, const std::string& reason) noexcept {
  subgroups_->roster().fail(Failure::Kind::kAborted, rank,
                            [&] { return messages::failed(subgroups_->roster().name(), rank, reason); });
}

void ThreadGroup::give_up(int rank) noexcept { subgroups_->give_up(rank); }

void ThreadGroup::leave(int rank) noexcept { subgroups_->leave(rank); }

void ThreadGroup::reset() noexcept { subgroups_->reset(); }

}  // namespace brigade::comm
