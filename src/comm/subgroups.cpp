#include "comm/subgroups.h"

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
  std::unique_ptr<Subgroup>& subgroup = subgroups_[ranks];
  if (!subgroup) subgroup = std::make_unique<Subgroup>(*this, ranks);
  return *subgroup->members[index];
}

void Subgroups::reset() noexcept {
  const std::lock_guard lock(mutex_);
  roster_.reset();
  for (auto& own : in_flight_) own.members.clear();
  for (auto& [ranks, subgroup] : subgroups_) {
    subgroup->meeting.reset();
    for (const auto& member : subgroup->members) member->reset();
  }
}

}  // namespace brigade::comm
