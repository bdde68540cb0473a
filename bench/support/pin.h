// Keeps the calling thread on one core while it lives, as mpirun does with its ranks.
#pragma once

#include <sched.h>

namespace brigade::bench {

class Pinned {
 public:
  // The `index`-th of the cores that this thread may use, counted round.
  explicit Pinned(int index) {
    sched_getaffinity(0, sizeof before_, &before_);
    const int count = CPU_COUNT(&before_);
    int position = 0;
    for (int core = 0; core < CPU_SETSIZE; ++core) {
      if (!CPU_ISSET(core, &before_) || position++ != index % count) continue;
      cpu_set_t one;
      CPU_ZERO(&one);
      CPU_SET(core, &one);
      sched_setaffinity(0, sizeof one, &one);
    }
  }
  ~Pinned() { sched_setaffinity(0, sizeof before_, &before_); }
  Pinned(const Pinned&) = delete;
  Pinned& operator=(const Pinned&) = delete;

 private:
  cpu_set_t before_;
};

}  // namespace brigade::bench
