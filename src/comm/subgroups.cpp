#include "comm/subgroups.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace brigade::comm {

Subgroups::Subgroup::Subgroup(Subgroups& all, std::vector<int> ranks) : meeting(all.roster_, std::move(ranks)) {
  for (int rank = 0; rank < meeting.size(); ++rank) {
    members.push_back(std::make_unique<ThreadGroup::Member>(meeting, all, rank));
  }
}

Subgroups::Subgroups(int size, ThreadGroup::Options options)
    : roster_(size, std::move(options)), in_flight_(static_cast<std::size_t>(size)) {
  std::vector<int> everyone(static_cast<std::size_t>(size));
  std::iota(everyone.begin(), everyone.end(), 0);
  among(everyone, 0);
  whole_ = subgroups_.begin()->second.get();
}

ThreadGroup::Member& Subgroups::among(const std::vector<int>& ranks, std::size_t index) {
  const std::lock_guard lock(mutex_);
  auto known = subgroups_.find(ranks);
  if (known == subgroups_.end()) known = subgroups_.emplace(ranks, std::make_unique<Subgroup>(*this, ranks)).first;
  return *known->second->members[index];
}

void Subgroups::give_up(int rank) noexcept {
  for (std::size_t i = in_flight(rank).size(); i-- > 0;) {
    ThreadGroup::Member& own = *in_flight(rank)[i];
    own.advance();
    if (!own.has_completed_all()) own.drop_all();
  }
}

void Subgroups::leave(int rank) noexcept {
  give_up(rank);
  roster_.leave(rank);
}

// Operations are numbered on, so that a handle from before is taken for nothing else.
void Subgroups::reset() noexcept {
  const std::lock_guard lock(mutex_);
  roster_.reset();
  for (InFlight& own : in_flight_) own.members.clear();
  for (auto& [ranks, subgroup] : subgroups_) {
    std::uint64_t last = 0;
    for (const auto& member : subgroup->members) last = std::max(last, member->last_begun());
    subgroup->meeting.reset(last);
    for (const auto& member : subgroup->members) member->reset(last);
  }
}

}  // namespace brigade::comm
