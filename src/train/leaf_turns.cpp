#include "leaf_turns.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>

#include "brigade/base/error.h"
#include "brigade/train/leaf.h"
#include "leaf_sums.h"
#include "memory.h"

namespace brigade::training {
namespace {

thread_local LeafTurns* current_turns = nullptr;

class TurnsGuard {
 public:
  explicit TurnsGuard(LeafTurns* turns) : before_(std::exchange(current_turns, turns)) {}
  ~TurnsGuard() { current_turns = before_; }
  TurnsGuard(const TurnsGuard&) = delete;
  TurnsGuard& operator=(const TurnsGuard&) = delete;

 private:
  LeafTurns* before_;
};

// Another leaf of the device has failed, and its exception is the one to tell.
struct Released : std::exception {};  // as autograd cleans up after nothing else

}  // namespace

// A thread that runs a leaf when it is told to, and waits for the next.
class LeafTurns::Thread {
 public:
  Thread(LeafTurns& turns, std::int64_t number) : turns_(turns), number_(number), thread_([this] { serve(); }) {}
  ~Thread() {
    {
      const std::lock_guard lock(turns_.mutex_);
      ends_ = true;
    }
    wanted_.notify_one();
    thread_.join();
  }
  Thread(const Thread&) = delete;
  Thread& operator=(const Thread&) = delete;

  // With the lock held.
  void begin() {
    has_work_ = true;
    wanted_.notify_one();
  }

 private:
  void serve() {
    std::unique_lock lock(turns_.mutex_);
    while (true) {
      wanted_.wait(lock, [this] { return has_work_ || ends_; });
      if (!std::exchange(has_work_, false)) return;
      lock.unlock();
      {
        const BodyState::Lent state(*turns_.state_);
        const TurnsGuard guard(&turns_);
        turns_.run_leaf(turns_.own_.begin + number_);
      }
      lock.lock();
    }
  }

  LeafTurns& turns_;
  std::int64_t number_;
  bool has_work_ = false;
  bool ends_ = false;
  std::condition_variable wanted_;
  std::thread thread_;
};

LeafTurns::LeafTurns() = default;
LeafTurns::~LeafTurns() = default;

LeafTurns* LeafTurns::current() noexcept { return current_turns; }

void LeafTurns::run(const LeafPlan& plan, int position, comm::Group& group,
                    c10::function_ref<void(std::int64_t leaf)> body) {
  own_ = plan.leaves_of(position);
  all_leaves_ = plan.leaves();
  turns_.clear();
  turns_.resize(static_cast<std::size_t>(own_.size()));
  have_met_ = false;
  failure_ = nullptr;
  group_ = &group;
  state_.emplace(BodyState::current());
  body_ = body;
  whose_ = own_.begin;
  const TurnsGuard guard(this);
  for (std::int64_t leaf = own_.begin; leaf < own_.end; ++leaf) {
    {
      const std::lock_guard lock(mutex_);
      if (turn(leaf).stage != Stage::kNotBegun || failure_) break;  // the others have threads of their own
      whose_ = leaf;
    }
    run_leaf(leaf);
  }
  std::unique_lock lock(mutex_);
  all_ended_.wait(lock, [this] { return count(Stage::kNotBegun) + count(Stage::kEnded) == own_.size(); });
  if (failure_) std::rethrow_exception(failure_);
}

// To its end, whatever that is.
void LeafTurns::run_leaf(std::int64_t leaf) {
  {
    const std::lock_guard lock(mutex_);
    turn(leaf).stage = Stage::kRuns;
  }
  try {
    (*body_)(leaf);
  } catch (const Released&) {
  } catch (...) {
    const std::lock_guard lock(mutex_);
    fail(std::current_exception());
  }
  const std::lock_guard lock(mutex_);
  turn(leaf).stage = Stage::kEnded;
  const auto waits =
      std::find_if(turns_.begin(), turns_.end(), [](const Turn& one) { return one.stage == Stage::kWaits; });
  if (waits != turns_.end() && !failure_) {
    fail(std::make_exception_ptr(CollectiveMismatch(fmt::format(
        "leaf {} ended while leaf {} waits in \"{}\": every leaf of a step must call the same sums over leaves", leaf,
        own_.begin + (waits - turns_.begin()), waits->tag))));
  }
  if (have_met_) hand_over(leaf);
  all_ended_.notify_all();
}

std::int64_t LeafTurns::count(Stage stage) const noexcept {
  return std::count_if(turns_.begin(), turns_.end(), [&](const Turn& one) { return one.stage == stage; });
}

// With the lock held, as whatever follows until sum().
void LeafTurns::fail(std::exception_ptr error) {
  if (!failure_) failure_ = std::move(error);
  for (Turn& one : turns_) one.comes.notify_all();
}

// The next leaf after `leaf` that has not ended, in a circle.
void LeafTurns::hand_over(std::int64_t leaf) {
  if (failure_) return;
  for (std::int64_t i = 1; i <= own_.size(); ++i) {
    const std::int64_t next = own_.begin + (leaf - own_.begin + i) % own_.size();
    Turn& theirs = turn(next);
    if (theirs.stage == Stage::kEnded) continue;
    whose_ = next;
    if (theirs.stage != Stage::kNotBegun) return theirs.comes.notify_all();
    const std::int64_t number = next - own_.begin;
    while (static_cast<std::int64_t>(threads_.size()) < number)
      threads_.push_back(std::make_unique<Thread>(*this, static_cast<std::int64_t>(threads_.size()) + 1));
    theirs.stage = Stage::kRuns;  // as good as
    return threads_[static_cast<std::size_t>(number - 1)]->begin();
  }
}

void LeafTurns::await_turn(std::unique_lock<std::mutex>& lock, std::int64_t leaf) {
  turn(leaf).comes.wait(lock, [&] { return whose_ == leaf || failure_; });
  if (failure_) throw Released();
}

std::vector<at::Tensor> LeafTurns::sum(std::int64_t leaf, const std::vector<at::Tensor>& values,
                                       const LeafSumOptions& options, std::source_location site) {
  std::unique_lock lock(mutex_);
  Turn& own = turn(leaf);
  if (count(Stage::kEnded) > 0) {
    throw CollectiveMismatch(
        fmt::format("leaf {} came to \"{}\" when another leaf of its device had ended: every leaf of a "
                    "step must call the same sums over leaves",
                    leaf, options.tag),
        {.site = site});
  }
  for (const Turn& other : turns_) {
    if (other.stage != Stage::kWaits || other.tag == options.tag) continue;
    throw CollectiveMismatch(fmt::format("leaf {} called \"{}\" where another leaf of its device called \"{}\"", leaf,
                                         options.tag, other.tag),
                             {.site = site});
  }
  have_met_ = true;
  own.stage = Stage::kWaits;
  own.values = values;
  own.tag = options.tag;
  if (count(Stage::kWaits) == own_.size()) {
    meet(options, site);
    for (Turn& one : turns_) one.stage = Stage::kMayGoOn;
  }
  if (own_.size() > 1) {
    hand_over(leaf);
    await_turn(lock, leaf);
  }
  own.stage = Stage::kRuns;
  return std::exchange(own.sums, {});
}

// All leaves of this device are at one sum. The others wait, so nobody needs the lock meanwhile.
void LeafTurns::meet(const LeafSumOptions& options, std::source_location site) {
  const std::size_t tensors = turns_.front().values.size();
  const std::int64_t size = options.group > 0 ? options.group : all_leaves_;
  for (std::int64_t begin = 0; begin < all_leaves_; begin += size) {
    const std::int64_t end = std::min(begin + size, all_leaves_);
    std::vector<LeafSums> sums(tensors);
    for (std::int64_t leaf = std::max(begin, own_.begin); leaf < std::min(end, own_.end); ++leaf) {
      if (turn(leaf).values.size() != tensors) {
        throw CollectiveMismatch(fmt::format("leaf {} gives {} tensors to \"{}\", and leaf {} gives {}", leaf,
                                             turn(leaf).values.size(), options.tag, own_.begin, tensors),
                                 {.site = site});
      }
      // Sums may be kept in the memory of what was added, which is the caller's.
      for (std::size_t i = 0; i < tensors; ++i) sums[i].add(leaf - begin, turn(leaf).values[i].clone());
    }
    std::vector<at::Tensor> results;
    std::vector<std::int32_t> counts;
    std::vector<std::vector<std::span<const std::byte>>> addends(tensors);
    std::vector<comm::Piece> pieces;
    for (std::size_t i = 0; i < tensors; ++i) {
      const at::Tensor& like = turns_.front().values[i];
      at::Tensor& result = results.emplace_back(at::empty_like(like));
      for (const LeafSums::Part& part : sums[i].parts()) {
        addends[i].push_back(bytes_of(part.sum));
        if (i == 0) counts.push_back(part.count);
      }
      pieces.push_back({.dtype = dtype_of(like.scalar_type()),
                        .out = bytes_of(result),
                        .addends = addends[i],
                        .shape = {like.sizes().data(), like.sizes().size()}});
    }
    group_->run(
        {.operation = comm::Operation::kAllReduce, .pieces = pieces, .leaves = std::span<const std::int32_t>(counts)},
        {.tag = options.tag, .site = site});
    for (std::int64_t leaf = std::max(begin, own_.begin); leaf < std::min(end, own_.end); ++leaf)
      turn(leaf).sums = results;
  }
}

}  // namespace brigade::training
