// What of a thread's state decides how operators compute: a launch gives the caller's to every device.
//
// Grad mode, inference mode, whether autocast is on, the profiler and hooks of saved tensors travel in libtorch's own
// at::ThreadLocalState; the dtype of autocast, the rounding mode and the flushing of denormals do not, and devices that
// differed in them would hold different replicas. The default dtype belongs to the process.
#pragma once

#include <ATen/ThreadLocalState.h>
#include <c10/core/AutogradState.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

namespace brigade {

// Autocast keeps casts of leaves that require grad, by their address: they are stale after an update in place. So no
// body uses that cache.
class AutocastCacheOff {
 public:
  AutocastCacheOff();
  ~AutocastCacheOff();
  AutocastCacheOff(const AutocastCacheOff&) = delete;
  AutocastCacheOff& operator=(const AutocastCacheOff&) = delete;

 private:
  bool before_;
};

// The part that libtorch does not carry.
struct ComputeSettings {
  at::ScalarType autocast_dtype;
  int rounding;             // as std::fegetround() gives it
  unsigned vector_control;  // of the vector unit, where it has a register of its own

  static ComputeSettings current();
  void apply() const;
};

class CallerState {
 public:
  // That of the calling thread.
  CallerState() : settings_(ComputeSettings::current()) {}

  // Gives it to a device's thread while it lives.
  class Lent {
   public:
    explicit Lent(const CallerState& state);
    ~Lent() { before_.apply(); }
    Lent(const Lent&) = delete;
    Lent& operator=(const Lent&) = delete;

   private:
    at::ThreadLocalStateGuard guard_;
    ComputeSettings before_;
    AutocastCacheOff cache_off_;
  };

  // Gives the calling thread, while it is a device itself, back what its body left changed.
  class Kept {
   public:
    Kept();
    ~Kept();
    Kept(const Kept&) = delete;
    Kept& operator=(const Kept&) = delete;

   private:
    c10::impl::LocalDispatchKeySet dispatch_;
    c10::AutogradState autograd_;
    ComputeSettings settings_;
    AutocastCacheOff cache_off_;
  };

 private:
  at::ThreadLocalState torch_;
  ComputeSettings settings_;
};

}  // namespace brigade
