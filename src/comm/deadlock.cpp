#include "comm/deadlock.h"

#include <algorithm>
#include <exception>
#include <vector>

#include "comm/meeting.h"
#include "comm/messages.h"

namespace brigade::comm {
namespace {

// Depth-first through "waits for". A participant waits for everyone that has not arrived, so any circle that can be reached
// will never move.
class Search {
 public:
  explicit Search(const Roster& roster) : roster_(roster), seen_(static_cast<std::size_t>(roster.size())) {}

  // True when it has come upon a circle.
  bool visit(int rank) {
    const Roster::Waiting waiting = roster_.waiting(rank);
    if (!waiting.place || waiting.place->meeting == nullptr) return false;
    const Meeting& meeting = *waiting.place->meeting;
    seen_[static_cast<std::size_t>(rank)] = true;
    path_.push_back({rank, waiting});
    const std::size_t own = path_.size() - 1;
    for (int other = 0; other < meeting.size(); ++other) {
      if (meeting.has_arrived(other, waiting.place->sequence)) continue;
      path_[own].waits_for = other;
      const int next = meeting.rank_in_roster(other);
      const auto on_path =
          std::find_if(path_.begin(), path_.end(), [&](const auto& step) { return step.rank == next; });
      if (on_path != path_.end()) {
        path_.erase(path_.begin(), on_path);
        return true;
      }
      if (!seen_[static_cast<std::size_t>(next)] && visit(next)) return true;
    }
    path_.pop_back();
    return false;
  }

  // Whether all of them wait for one another at one time: nobody has come meanwhile, and nobody has stopped to wait, so
  // that nobody can have come and gone.
  bool is_still_true() const {
    const auto has_come = [](const Step& step) {
      return step.waiting.place->meeting->has_arrived(step.waits_for, step.waiting.place->sequence);
    };
    const auto waits_still = [&](const Step& step) {
      return roster_.waiting(step.rank).version == step.waiting.version;
    };
    return std::none_of(path_.begin(), path_.end(), has_come) && std::all_of(path_.begin(), path_.end(), waits_still);
  }

  std::vector<messages::Wait> circle() const {
    std::vector<messages::Wait> waits;
    for (const Step& step : path_)
      waits.push_back({step.rank, step.waiting.place->meeting, step.waiting.place->sequence});
    return waits;
  }

 private:
  struct Step {
    int rank;
    Roster::Waiting waiting;
    int waits_for = 0;  // in its meeting
  };

  const Roster& roster_;
  std::vector<bool> seen_;
  std::vector<Step> path_;
};

}  // namespace

void break_deadlock(Roster& roster, int rank) noexcept {
  if (roster.failed()) return;
  try {
    Search search(roster);
    if (!search.visit(rank) || !search.is_still_true()) return;
    roster.fail(Failure::Kind::kMismatch, rank, [&] { return messages::deadlock(roster.name(), search.circle()); });
  } catch (const std::exception&) {
    // Out of memory: the deadline remains.
  }
}

}  // namespace brigade::comm
