// A group whose participants are threads of this process and meet in shared memory.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "brigade/comm/group.h"

namespace brigade::comm {

class Subgroups;

class ThreadGroup {
 public:
  struct Options {
    // An operation throws DeadlineExceeded once no participant of the group has made progress (arrived, finished or
    // left) for this long.
    std::chrono::nanoseconds time_without_progress = std::chrono::seconds(60);
    // Whether waits spin briefly before they sleep. Pays only when every participant has a core of its own.
    bool spin = true;
    // Prefixed to messages, such as `axis "devices"`.
    std::string name = {};
  };

  // Throws InvalidArgument when size < 1.
  ThreadGroup(int size, Options options);
  ~ThreadGroup();
  ThreadGroup(const ThreadGroup&) = delete;
  ThreadGroup& operator=(const ThreadGroup&) = delete;

  int size() const noexcept;

  // The handle of participant `rank`, valid as long as the group. One thread at a time may use it.
  Group& member(int rank);

  // Participant `rank` has failed: everyone who waits, or comes later, gets Aborted with the rank and `reason`. The
  // first reason stays. Never throws and may be called from any thread.
  void abort(int rank, const std::string& reason) noexcept;

  // Participant `rank` unwinds: what it has started and not completed is given up, on its own thread. The group fails, if
  // there is any; on return nobody touches that memory any more.
  void give_up(int rank) noexcept;

  // Participant `rank` will call nothing more (its body has returned); on its own thread. Whoever waits for it gets
  // CollectiveMismatch. Gives up what it has started and not completed.
  void leave(int rank) noexcept;

  // Makes the group usable again. Only when no participant is inside an operation.
  void reset() noexcept;

 private:
  class Member;
  friend class Subgroups;
  std::unique_ptr<Subgroups> subgroups_;
};

}  // namespace brigade::comm
