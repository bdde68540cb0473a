// The one runtime of the process: its devices, their threads, and who is using them.
#pragma once

#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "brigade/runtime/device.h"
#include "worker.h"

namespace brigade {

class Runtime {
 public:
  // Created on first use.
  static Runtime& instance();

  const std::vector<Device>& devices() const noexcept { return devices_; }
  int cores() const noexcept { return cores_; }
  int intra_op_threads() const noexcept { return intra_op_threads_; }

  // Null for device 0, which is whichever thread calls.
  Worker* worker(const Device& device) noexcept { return slots_[static_cast<std::size_t>(device.index)].worker.get(); }

  // Holds all of `devices` for one launch. They are taken in ascending order, so that launches from several threads
  // wait for one another and never in a circle, and none starts before it holds all.
  class Lease {
   public:
    Lease(Runtime& runtime, std::span<const Device> devices);

   private:
    std::vector<std::unique_lock<std::mutex>> locks_;
  };

  // What a thread needs before it computes as a device: number of threads inside operators, and pinning if asked for.
  void prepare_thread(const Device& device) noexcept;

  // Gives the thread that called back its own number of threads inside operators.
  void restore_thread(int intra_op_threads) noexcept;

 private:
  Runtime();

  struct Slot {
    std::mutex busy;
    std::unique_ptr<Worker> worker;
  };

  int cores_ = 1;
  int intra_op_threads_ = 1;
  std::vector<Device> devices_;
  std::vector<Slot> slots_;
};

}  // namespace brigade
