// A hundred thousand collectives with random shapes, groups, delays, aborts, deadlines and mismatches. Whatever completes
// must have the right result, whatever fails must fail for everyone who is concerned, and nothing may hang or touch memory
// of a participant that has left: buffers are freed at once, so the sanitizers would see it.
#include <CLI/CLI.hpp>
#include <array>
#include <atomic>
#include <memory>
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
  std::size_t block;  // elements
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
    const std::size_t block =
        roll(dice, 3) == 0 ? static_cast<std::size_t>(roll(dice, 20'000)) : static_cast<std::size_t>(roll(dice, 40));
    plan.steps.push_back(
        {static_cast<Operation>(roll(dice, 7)), block, roll(dice, 3) == 0, random_parts(dice, plan.ranks)});
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
      : step_(step), part_(part), own_(static_cast<std::size_t>(group.rank())) {
    const std::size_t size = part.size();
    const bool blocks_in = step.operation == Operation::kReduceScatter || step.operation == Operation::kAllToAll;
    const bool blocks_out = step.operation == Operation::kAllGather || step.operation == Operation::kAllToAll;
    in_count_ = step.block * (blocks_in ? size : 1);
    out_count_ = step.block * (blocks_out ? size : 1);
    in_ = std::make_unique<std::int64_t[]>(in_count_);
    out_ = std::make_unique<std::int64_t[]>(out_count_);
    number_ = static_cast<std::int64_t>(number);
    for (std::size_t i = 0; i < in_count_; ++i) in_[i] = input(own_, i);
    if (step.operation == Operation::kPermute) {
      for (std::size_t i = 0; i + 1 < size; ++i) pairs_.emplace_back(static_cast<int>(i), static_cast<int>(i + 1));
    }
    piece_ = {.dtype = DType::kInt64,
              .in = std::as_bytes(std::span(in_.get(), in_count_)),
              .out = std::as_writable_bytes(std::span(out_.get(), out_count_))};
  }
  ~Work() {
    std::fill_n(in_.get(), in_count_, -1);
    std::fill_n(out_.get(), out_count_, -1);
  }
  Work(const Work&) = delete;
  Work& operator=(const Work&) = delete;

  Call call() const {
    if (step_.operation == Operation::kBarrier) return {};
    return {.operation = step_.operation, .root = 0, .pairs = pairs_, .pieces = {&piece_, 1}};
  }

  void check() const {
    if (step_.operation == Operation::kBarrier) return;
    for (std::size_t i = 0; i < out_count_; ++i) {
      if (out_[i] != expected(i)) {
        throw std::logic_error(fmt::format("{} of {} elements: element {} is {} and must be {}",
                                           name_of(step_.operation), step_.block, i, out_[i], expected(i)));
      }
    }
  }

 private:
  // Of the participant that is `rank` in the group.
  std::int64_t input(std::size_t rank, std::size_t i) const {
    return 1'000'003 * number_ + 10'007 * part_[rank] + static_cast<std::int64_t>(i);
  }

  std::int64_t expected(std::size_t i) const {
    const std::size_t block = step_.block;
    switch (step_.operation) {
      case Operation::kAllReduce:
        return sum(i);
      case Operation::kReduceScatter:
        return sum(own_ * block + i);
      case Operation::kAllGather:
        return input(i / block, i % block);
      case Operation::kAllToAll:
        return input(i / block, own_ * block + i % block);
      case Operation::kBroadcast:
        return input(0, i);
      case Operation::kPermute:
        return own_ == 0 ? 0 : input(own_ - 1, i);
      case Operation::kBarrier:
        break;
    }
    return 0;
  }

  std::int64_t sum(std::size_t i) const {
    std::int64_t total = 0;
    for (std::size_t rank = 0; rank < part_.size(); ++rank) total += input(rank, i);
    return total;
  }

  const Step& step_;
  const std::vector<int>& part_;
  std::size_t own_;
  std::int64_t number_ = 0;
  std::size_t in_count_ = 0, out_count_ = 0;
  std::unique_ptr<std::int64_t[]> in_, out_;
  std::vector<RankPair> pairs_;
  Piece piece_;
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
  Participant(const Plan& plan, ThreadGroup& group, Group& member, std::atomic<std::int64_t>& completed)
      : plan_(plan),
        group_(group),
        member_(member),
        completed_(completed),
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
      group.run(work->call(), {.tag = "stress"});
      work->check();
      completed_.fetch_add(1);
    }
  }

  void complete_oldest() {
    pending_.front().wait();
    work_.front()->check();
    completed_.fetch_add(1);
    pending_.erase(pending_.begin());
    work_.erase(work_.begin());
  }

  const Plan& plan_;
  ThreadGroup& group_;
  Group& member_;
  std::atomic<std::int64_t>& completed_;
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
  std::atomic<std::int64_t> completed{0};
  const Clock::time_point start = Clock::now();
  const auto elapsed = [&] { return std::chrono::duration<double>(Clock::now() - start).count(); };
  std::optional<ThreadGroup> group;
  Plan last{};
  while (completed.load() < wanted && elapsed() < seconds) {
    const Plan plan = random_plan(dice);
    if (group && last.ranks == plan.ranks && last.spin == plan.spin) {
      group->reset();  // the same group goes on, after whatever happened to it
    } else {
      group.emplace(plan.ranks,
                    ThreadGroup::Options{.time_without_progress = std::chrono::seconds(100), .spin = plan.spin});
    }
    last = plan;
    const auto thrown = testing::outcomes(*group, [&](Group& member) {
      try {
        Participant(plan, *group, member, completed).run();
        group->leave(member.rank());
      } catch (const std::exception& error) {
        group->abort(member.rank(), error.what());
        throw;
      }
    });
    try {
      check_thrown(plan, thrown);
    } catch (const std::exception& error) {
      fmt::print(stderr, "stress: seed {}, {} participants, {} steps, trouble: {}: {}\n", seed, plan.ranks,
                 plan.steps.size(), kTroubles[static_cast<std::size_t>(plan.trouble)], error.what());
      return 1;
    }
    ++rounds[static_cast<std::size_t>(plan.trouble)];
  }
  fmt::print("stress: {} collectives of participants completed in {:.1f} s with seed {}; rounds by how they ended:\n",
             completed.load(), elapsed(), seed);
  for (std::size_t i = 0; i < rounds.size(); ++i) fmt::print("  {:<22}{:>7}\n", kTroubles[i], rounds[i]);
  if (completed.load() >= wanted) return 0;
  fmt::print(stderr, "stress: time was up before {} were completed\n", wanted);
  return 1;
}

}  // namespace
}  // namespace brigade::comm

int main(int argc, char** argv) {
  CLI::App app("Collectives with failures at random.");
  std::int64_t collectives = 100'000;
  int seconds = 600;
  unsigned seed = 1;
  app.add_option("--collectives", collectives, "how many have to complete, counted once per participant")
      ->capture_default_str();
  app.add_option("--seconds", seconds, "give up after so long")->capture_default_str();
  app.add_option("--seed", seed)->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  return brigade::comm::run(collectives, seconds, seed);
}
