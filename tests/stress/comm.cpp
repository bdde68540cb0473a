// A hundred thousand collectives with random shapes, groups, delays, aborts, deadlines and mismatches. Whatever completes
// must have the right result, whatever fails must fail for everyone who is concerned, and nothing may hang or touch memory
// of a participant that has left: buffers are freed at once, so the sanitizers would see it.
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <array>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <optional>

#include "comm/support.h"

namespace brigade::comm {
namespace {

using Clock = std::chrono::steady_clock;
using Dice = std::mt19937;

int roll(Dice& dice, int sides) { return static_cast<int>(dice() % static_cast<unsigned>(sides)); }

// How a round ends early, if it does.
enum class Trouble { kNone, kThrow, kAbort, kLeave, kMismatch, kDeadline, kDrop, kBystander };
constexpr std::array<const char*, 8> kTroubles = {
    "none",     "exception",       "abort",          "early return",
    "mismatch", "missed deadline", "handle dropped", "abort by a bystander"};

struct Step {
  Operation operation;
  std::vector<std::size_t> blocks;  // elements of each piece
  bool in_place;                    // where inputs and outputs are equally large
  bool asynchronous;
  std::vector<std::vector<int>> parts;  // the groups among which it takes place
};

struct Plan {
  int ranks;
  bool spin;
  std::vector<Step> steps;
  Trouble trouble;
  int who;
  std::size_t when;
};

std::vector<std::vector<int>> random_parts(Dice& dice, int ranks) {
  std::vector<int> order(static_cast<std::size_t>(ranks));
  std::iota(order.begin(), order.end(), 0);
  if (roll(dice, 2) == 0) return {order};
  std::shuffle(order.begin(), order.end(), dice);
  std::vector<std::vector<int>> parts(1);
  for (const int rank : order) {
    if (!parts.back().empty() && roll(dice, 3) == 0) parts.emplace_back();
    parts.back().push_back(rank);
  }
  return parts;
}

Plan random_plan(Dice& dice) {
  Plan plan{.ranks = 2 + roll(dice, 7),
            .spin = roll(dice, 2) == 0,
            .steps = {},
            .trouble = Trouble::kNone,
            .who = 0,
            .when = 0};
  const int steps = 1 + roll(dice, 40);
  for (int i = 0; i < steps; ++i) {
    std::vector<std::size_t> blocks(static_cast<std::size_t>(1 + (roll(dice, 3) == 0 ? roll(dice, 4) : 0)));
    for (std::size_t& block : blocks) block = static_cast<std::size_t>(roll(dice, roll(dice, 3) == 0 ? 20'000 : 40));
    plan.steps.push_back({.operation = static_cast<Operation>(roll(dice, static_cast<int>(kOperationCount))),
                          .blocks = blocks,
                          .in_place = roll(dice, 2) == 0,
                          .asynchronous = roll(dice, 3) == 0,
                          .parts = random_parts(dice, plan.ranks)});
  }
  if (roll(dice, 3) == 0) plan.trouble = static_cast<Trouble>(1 + roll(dice, 7));
  plan.who = roll(dice, plan.ranks);
  plan.when = static_cast<std::size_t>(roll(dice, steps));
  return plan;
}

// One participant's part of one step: its buffers, and what they must hold afterwards.
class Work {
 public:
  Work(const Step& step, std::size_t number, Group& group, const std::vector<int>& part)
      : step_(step), part_(part), own_(static_cast<std::size_t>(group.rank())), number_(number) {
    const std::size_t size = part.size();
    const bool blocks_in = step.operation == Operation::kReduceScatter || step.operation == Operation::kAllToAll;
    const bool blocks_out = step.operation == Operation::kAllGather || step.operation == Operation::kAllToAll;
    if (step.operation == Operation::kPermute) {
      for (std::size_t i = 0; i + 1 < size; ++i) pairs_.emplace_back(static_cast<int>(i), static_cast<int>(i + 1));
    }
    for (std::size_t piece = 0; piece < step.blocks.size(); ++piece) {
      const std::size_t in = step.blocks[piece] * (blocks_in ? size : 1);
      const std::size_t out = step.blocks[piece] * (blocks_out ? size : 1);
      inputs_.emplace_back(in);
      for (std::size_t i = 0; i < in; ++i) inputs_.back()[i] = input(piece, own_, i);
      outputs_.emplace_back(step.in_place && in == out ? 0 : out);
      std::vector<std::int64_t>& result = step.in_place && in == out ? inputs_.back() : outputs_.back();
      pieces_.push_back({.dtype = DType::kInt64,
                         .in = std::as_bytes(std::span(inputs_.back())),
                         .out = std::as_writable_bytes(std::span(result))});
    }
  }
  ~Work() {
    for (auto* buffers : {&inputs_, &outputs_}) {
      for (std::vector<std::int64_t>& buffer : *buffers) std::fill(buffer.begin(), buffer.end(), -1);
    }
  }
  Work(const Work&) = delete;
  Work& operator=(const Work&) = delete;

  const std::vector<int>& part() const { return part_; }
  std::size_t number() const { return number_; }

  Call call() const {
    if (step_.operation == Operation::kBarrier) return {};
    return {.operation = step_.operation, .root = 0, .pairs = pairs_, .pieces = pieces_};
  }

  void check() const {
    if (step_.operation == Operation::kBarrier || (step_.operation == Operation::kReduce && own_ != 0)) return;
    for (std::size_t piece = 0; piece < pieces_.size(); ++piece) {
      const auto* result = reinterpret_cast<const std::int64_t*>(pieces_[piece].out.data());
      for (std::size_t i = 0; i < pieces_[piece].out.size() / sizeof *result; ++i) {
        if (result[i] == expected(piece, i)) continue;
        throw std::logic_error(fmt::format("{}, piece {} of {} elements: element {} is {} and must be {}",
                                           name_of(step_.operation), piece, step_.blocks[piece], i, result[i],
                                           expected(piece, i)));
      }
    }
  }

 private:
  // Of the participant that is `rank` in the group.
  std::int64_t input(std::size_t piece, std::size_t rank, std::size_t i) const {
    return 1'000'003 * static_cast<std::int64_t>(number_) + 100'003 * static_cast<std::int64_t>(piece) +
           10'007 * part_[rank] + static_cast<std::int64_t>(i);
  }

  std::int64_t expected(std::size_t piece, std::size_t i) const {
    const std::size_t block = step_.blocks[piece];
    switch (step_.operation) {
      case Operation::kAllReduce:
      case Operation::kReduce:
        return sum(piece, i);
      case Operation::kReduceScatter:
        return sum(piece, own_ * block + i);
      case Operation::kAllGather:
        return input(piece, i / block, i % block);
      case Operation::kAllToAll:
        return input(piece, i / block, own_ * block + i % block);
      case Operation::kBroadcast:
        return input(piece, 0, i);
      case Operation::kPermute:
        return own_ == 0 ? 0 : input(piece, own_ - 1, i);
      case Operation::kBarrier:
        break;
    }
    return 0;
  }

  std::int64_t sum(std::size_t piece, std::size_t i) const {
    std::int64_t total = 0;
    for (std::size_t rank = 0; rank < part_.size(); ++rank) total += input(piece, rank, i);
    return total;
  }

  const Step& step_;
  const std::vector<int>& part_;
  std::size_t own_;
  std::size_t number_;
  std::deque<std::vector<std::int64_t>> inputs_, outputs_;
  std::vector<RankPair> pairs_;
  std::vector<Piece> pieces_;
};

// How the operations of a round ended: all or none of those who waited for one in vain, or to its end.
class Endings {
 public:
  void ended_well(const Work& work) { note(work, kWell); }
  void failed(const Work& work) { note(work, kFailed); }

  // Operations of groups that ended well.
  std::int64_t count_well() const {
    return std::count_if(ends_.begin(), ends_.end(), [](const auto& end) { return end.second == kWell; });
  }

  void check() const {
    for (const auto& [operation, end] : ends_) {
      if (end != (kWell | kFailed)) continue;
      throw std::logic_error(fmt::format("step {} among ranks [{}] ended well for some and failed for others",
                                         operation.first, fmt::join(operation.second, ", ")));
    }
  }

 private:
  static constexpr int kWell = 1;
  static constexpr int kFailed = 2;

  void note(const Work& work, int how) {
    const std::lock_guard lock(mutex_);
    ends_[{work.number(), work.part()}] |= how;
  }

  std::mutex mutex_;
  std::map<std::pair<std::size_t, std::vector<int>>, int> ends_;
};

struct Villain : std::runtime_error {
  using std::runtime_error::runtime_error;
};

void delay(Dice& dice) {
  const int how = roll(dice, 60);
  if (how == 0) std::this_thread::sleep_for(std::chrono::microseconds(roll(dice, 400)));
  if (how < 6) std::this_thread::yield();
}

// What one participant does in one round. Returns early, or throws, where its plan says so.
class Participant {
 public:
  Participant(const Plan& plan, ThreadGroup& group, Group& member, Endings& endings)
      : plan_(plan),
        group_(group),
        member_(member),
        endings_(endings),
        dice_(static_cast<unsigned>(1000 * plan.steps.size() + static_cast<std::size_t>(member.rank()))) {}

  void run() {
    for (std::size_t number = 0; number < plan_.steps.size(); ++number) {
      delay(dice_);
      const bool in_trouble = member_.rank() == plan_.who && number == plan_.when;
      if (in_trouble && make_trouble()) return;
      take(number);
      if (in_trouble && plan_.trouble == Trouble::kDrop) {
        pending_.clear();  // before work_: the handles still need it
        throw Villain("dropped its handles");
      }
      while (!pending_.empty() && roll(dice_, 4) == 0) complete_oldest();
    }
    while (!pending_.empty()) complete_oldest();
    if (bystander_.joinable()) bystander_.join();
  }

  ~Participant() {
    pending_.clear();
    if (bystander_.joinable()) bystander_.join();
  }

 private:
  // Whether the participant returns now.
  bool make_trouble() {
    switch (plan_.trouble) {
      case Trouble::kThrow:
        throw Villain("threw");
      case Trouble::kAbort:
        group_.abort(plan_.who, "aborted");
        throw Villain("aborted");
      case Trouble::kLeave:
        while (!pending_.empty()) complete_oldest();
        return true;
      case Trouble::kMismatch:
        member_.barrier({.tag = "another"});
        return true;
      case Trouble::kDeadline:
        member_.barrier({.tag = "late", .deadline = Deadline::in(std::chrono::microseconds(1 + roll(dice_, 500)))});
        return true;
      case Trouble::kBystander:
        bystander_ = std::thread([this, wait = roll(dice_, 300)] {
          std::this_thread::sleep_for(std::chrono::microseconds(wait));
          group_.abort(plan_.who, "bystander");
        });
        return false;
      default:
        return false;
    }
  }

  void take(std::size_t number) {
    const Step& step = plan_.steps[number];
    const auto& part = *std::find_if(step.parts.begin(), step.parts.end(), [&](const std::vector<int>& ranks) {
      return std::find(ranks.begin(), ranks.end(), member_.rank()) != ranks.end();
    });
    Group& group = member_.among(part);
    auto work = std::make_unique<Work>(step, number, group, part);
    if (step.asynchronous) {
      work_.push_back(std::move(work));
      pending_.push_back(group.start(work_.back()->call(), {.tag = "stress"}));
    } else {
      complete(*work, [&] { group.run(work->call(), {.tag = "stress"}); });
    }
  }

  void complete_oldest() {
    complete(*work_.front(), [&] { pending_.front().wait(); });
    pending_.erase(pending_.begin());
    work_.erase(work_.begin());
  }

  template <class Wait>
  void complete(const Work& work, Wait wait) {
    try {
      wait();
    } catch (...) {
      endings_.failed(work);
      throw;
    }
    work.check();
    endings_.ended_well(work);
  }

  const Plan& plan_;
  ThreadGroup& group_;
  Group& member_;
  Endings& endings_;
  Dice dice_;
  std::vector<std::unique_ptr<Work>> work_;
  std::vector<Pending> pending_;
  std::thread bystander_;
};

// Every exception but those that failures are made of is a defect.
void check_thrown(const Plan& plan, const std::vector<std::exception_ptr>& thrown) {
  for (std::size_t rank = 0; rank < thrown.size(); ++rank) {
    if (!thrown[rank]) continue;
    try {
      std::rethrow_exception(thrown[rank]);
    } catch (const Villain&) {
    } catch (const Aborted&) {
    } catch (const CollectiveMismatch&) {
    } catch (const DeadlineExceeded&) {
    }
    if (plan.trouble == Trouble::kNone) std::rethrow_exception(thrown[rank]);
  }
}

int run(std::int64_t wanted, int seconds, unsigned seed) {
  Dice dice(seed);
  std::array<std::int64_t, kTroubles.size()> rounds{};
  std::int64_t completed = 0;
  const Clock::time_point start = Clock::now();
  const auto elapsed = [&] { return std::chrono::duration<double>(Clock::now() - start).count(); };
  std::optional<ThreadGroup> group;
  Plan last{};
  while (completed < wanted && elapsed() < seconds) {
    const Plan plan = random_plan(dice);
    if (group && last.ranks == plan.ranks && last.spin == plan.spin) {
      group->reset();  // the same group goes on, after whatever happened to it
    } else {
      group.emplace(plan.ranks, ThreadGroup::Options{.time_without_progress = testing::kNoLimit, .spin = plan.spin});
    }
    last = plan;
    Endings endings;
    const auto thrown = testing::outcomes(*group, [&](Group& member) {
      try {
        Participant(plan, *group, member, endings).run();
        group->leave(member.rank());
      } catch (const std::exception& error) {
        group->abort(member.rank(), error.what());
        throw;
      }
    });
    try {
      check_thrown(plan, thrown);
      endings.check();
    } catch (const std::exception& error) {
      fmt::print(stderr, "stress: seed {}, {} participants, {} steps, trouble: {}: {}\n", seed, plan.ranks,
                 plan.steps.size(), kTroubles[static_cast<std::size_t>(plan.trouble)], error.what());
      return 1;
    }
    completed += endings.count_well();
    ++rounds[static_cast<std::size_t>(plan.trouble)];
  }
  fmt::print("stress: {} collectives completed in {:.1f} s with seed {}; rounds by how they ended:\n", completed,
             elapsed(), seed);
  for (std::size_t i = 0; i < rounds.size(); ++i) fmt::print("  {:<22}{:>7}\n", kTroubles[i], rounds[i]);
  if (completed >= wanted) return 0;
  fmt::print(stderr, "stress: time was up before {} were completed\n", wanted);
  return 1;
}

}  // namespace
}  // namespace brigade::comm

int main(int argc, char** argv) {
  CLI::App app("Collectives with failures at random.");
  std::int64_t collectives = 100'000;
  int seconds = 1800;
  unsigned seed = 1;
  app.add_option("--collectives", collectives, "how many have to complete")->capture_default_str();
  app.add_option("--seconds", seconds, "give up after so long")->capture_default_str();
  app.add_option("--seed", seed)->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  return brigade::comm::run(collectives, seconds, seed);
}
