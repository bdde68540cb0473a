// The group of all participants of a roster and those among some of them, made when first asked for.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "comm/meeting.h"
#include "comm/member.h"
#include "comm/roster.h"

namespace brigade::comm {

class Subgroups {
 public:
  Subgroups(int size, ThreadGroup::Options options);

  Roster& roster() noexcept { return roster_; }
  ThreadGroup::Member& member(int rank) noexcept { return *whole_->members[static_cast<std::size_t>(rank)]; }

  // `ranks` are those of the roster; the result is the member of ranks[index]. Any participant may ask at any time.
  ThreadGroup::Member& among(const std::vector<int>& ranks, std::size_t index);

  // This participant's members that have begun something and not completed it. Of its own thread.
  std::vector<ThreadGroup::Member*>& in_flight(int rank) noexcept {
    return in_flight_[static_cast<std::size_t>(rank)].members;
  }

  // See ThreadGroup.
  void give_up(int rank) noexcept;
  void leave(int rank) noexcept;

  void reset() noexcept;

 private:
  struct Subgroup {
    Subgroup(Subgroups& all, std::vector<int> ranks);

    Meeting meeting;
    std::vector<std::unique_ptr<ThreadGroup::Member>> members;
  };

  struct alignas(kCacheLine) InFlight {
    std::vector<ThreadGroup::Member*> members;
  };

  Roster roster_;
  std::vector<InFlight> in_flight_;
  std::mutex mutex_;
  std::map<std::vector<int>, std::unique_ptr<Subgroup>> subgroups_;
  Subgroup* whole_;
};

}  // namespace brigade::comm
