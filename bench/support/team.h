// The devices of a bench: threads that meet in one ThreadGroup. The calling thread is the first of them; the others sleep
// between runs.
#pragma once

#include <barrier>
#include <functional>
#include <thread>
#include <vector>

#include "brigade/comm/thread_group.h"

namespace brigade::bench {

class Team {
 public:
  using Work = std::function<double(comm::Group& member)>;

  explicit Team(int size);
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  int size() const noexcept { return group_.size(); }

  // Carries out `work` on every thread, each on a core of its own if there are enough, and returns what it gave on the
  // first once all are through. Work that throws ends the program.
  double run(const Work& work) noexcept;

 private:
  void serve(int rank) noexcept;
  double carry_out(int rank) noexcept;

  comm::ThreadGroup group_;
  std::barrier<> start_;
  std::barrier<> end_;
  const Work* work_ = nullptr;  // none: the threads end
  std::vector<std::jthread> threads_;
};

}  // namespace brigade::bench
