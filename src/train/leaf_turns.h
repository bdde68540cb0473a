// The leaves that one device carries, one after the other, or by turns when they meet in forward or backward.
//
// A leaf that waits for the others in leaf_sum() hands over to the next one, which gets a thread of its own; one thread of them
// runs at a time. When the last has come to the sum, it meets the other devices for all, and the first goes on. A model that
// never meets runs leaf after leaf on the device's own thread.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/FunctionRef.h>

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <source_location>
#include <string>
#include <thread>
#include <vector>

#include "brigade/comm/group.h"
#include "brigade/runtime/body.h"
#include "brigade/train/leaf_sum.h"
#include "leaf_plan.h"

namespace brigade::training {

class LeafTurns {
 public:
  LeafTurns();
  ~LeafTurns();
  LeafTurns(const LeafTurns&) = delete;
  LeafTurns& operator=(const LeafTurns&) = delete;

  // Runs body(leaf) for each leaf of the device at `position`. `group` is of those devices that have leaves. When a leaf throws,
  // those that wait are released, none is begun, and its exception is rethrown once all have ended.
  void run(const LeafPlan& plan, int position, comm::Group& group, c10::function_ref<void(std::int64_t leaf)> body);

  // Whether leaves have met, in the run that goes on.
  bool have_met() const noexcept { return have_met_; }
  std::int64_t leaves() const noexcept { return all_leaves_; }

  // In the body of `leaf`.
  std::vector<at::Tensor> sum(std::int64_t leaf, const std::vector<at::Tensor>& values, const LeafSumOptions& options,
                              std::source_location site);

  // Those whose leaf the calling thread runs; null outside.
  static LeafTurns* current() noexcept;

 private:
  enum class Stage {
    kNotBegun,
    kRuns,
    kWaits,    // in a sum, for the other leaves
    kMayGoOn,  // has its sums, and waits for its turn
    kEnded
  };

  // What a leaf brings to a sum, and gets from it.
  struct Turn {
    Stage stage = Stage::kNotBegun;
    std::vector<at::Tensor> values = {};
    std::vector<at::Tensor> sums = {};
    std::string tag = {};
    std::condition_variable comes = {};
  };

  class Thread;

  Turn& turn(std::int64_t leaf) noexcept { return turns_[static_cast<std::size_t>(leaf - own_.begin)]; }
  void run_leaf(std::int64_t leaf);
  void hand_over(std::int64_t leaf);
  void await_turn(std::unique_lock<std::mutex>& lock, std::int64_t leaf);
  void meet(const LeafSumOptions& options, std::source_location site);
  void fail(std::exception_ptr error);
  std::int64_t count(Stage stage) const noexcept;

  std::mutex mutex_;
  std::deque<Turn> turns_;  // of this device's leaves
  std::condition_variable all_ended_;
  LeafRange own_;
  std::int64_t all_leaves_ = 0;
  std::int64_t whose_ = 0;  // turn it is
  bool have_met_ = false;
  std::exception_ptr failure_;
  comm::Group* group_ = nullptr;
  std::optional<BodyState> state_;
  std::optional<c10::function_ref<void(std::int64_t leaf)>> body_;
  std::vector<std::unique_ptr<Thread>> threads_;  // of the device's second leaf on
};

}  // namespace brigade::training
