// The one runtime of the process: its devices, their threads, and who is using them.
#pragma once

#include <c10/util/FunctionRef.h>
#include <c10/util/SmallVector.h>
#include <sched.h>

#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "brigade/runtime/device.h"
#include "worker.h"

namespace brigade {

// Sets the threads inside operators for the calling thread only. at::set_num_threads would also set what every thread
// of the process that starts later begins with.
void set_thread_intra_op(int threads);

class Runtime {
 public:
  // Created on first use.
  static Runtime& instance();

  const std::vector<Device>& devices() const noexcept { return devices_; }
  int cores() const noexcept { return cores_; }
  int intra_op_threads() const noexcept { return intra_op_threads_; }

  // Null for device 0, which is whichever thread calls.
  Worker* worker(const Device& device) noexcept { return slots_[static_cast<std::size_t>(device.index)].worker; }

  // Holds all of `devices` for one launch. They are taken in ascending order, so that launches from several threads
  // wait for one another and never in a circle, and none starts before it holds all. A launch that waits for longer than
  // BRIGADE_DEADLINE logs that, with `what` it is: it may wait for a body that waits for it, which nobody here can know.
  class Lease {
   public:
    Lease(Runtime& runtime, std::span<const Device> devices, c10::function_ref<std::string()> what);

   private:
    c10::SmallVector<std::unique_lock<std::timed_mutex>, 8> locks_;
  };

  // The calling thread computes as `device` from now on: number of threads inside operators, and pinning if asked for.
  static void become(const Device& device, int intra_op_threads) noexcept;

  // Lets a user's thread compute as a device while it lives, and be itself again afterwards.
  class Borrowed {
   public:
    Borrowed(Runtime& runtime, const Device& device) noexcept;
    ~Borrowed();
    Borrowed(const Borrowed&) = delete;
    Borrowed& operator=(const Borrowed&) = delete;

   private:
    int intra_op_threads_;
    bool pinned_;
    cpu_set_t affinity_;
  };

 private:
  Runtime();

  struct Slot {
    std::timed_mutex busy;
    Worker* worker = nullptr;  // never deleted: its thread waits inside it as long as the process lives
  };

  int cores_ = 1;
  int intra_op_threads_ = 1;
  std::vector<Device> devices_;
  std::vector<Slot> slots_;
};

}  // namespace brigade
