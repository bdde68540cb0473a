// Failures at any moment, thousands of times: nobody hangs, nobody touches memory of a participant that has left, and
// operations that succeed have the right result. Run under ThreadSanitizer and AddressSanitizer these tests watch the
// memory of those who unwind.
#include <atomic>
#include <memory>

#include "comm/support.h"

namespace brigade::comm {
namespace chaos_test {

using testing::outcomes;
using testing::text_of;

// A buffer that is poisoned and freed when its participant leaves, with or without an exception.
class Buffer {
 public:
  Buffer(std::size_t count, std::int64_t value) : values_(std::make_unique<std::int64_t[]>(count)), count_(count) {
    std::fill_n(values_.get(), count_, value);
  }
  ~Buffer() { std::fill_n(values_.get(), count_, -1); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  Piece in_place() {
    const std::span<std::byte> bytes = std::as_writable_bytes(values());
    return {.dtype = DType::kInt64, .in = bytes, .out = bytes};
  }
  std::span<std::int64_t> values() { return {values_.get(), count_}; }

 private:
  std::unique_ptr<std::int64_t[]> values_;
  std::size_t count_;
};

struct Plan {
  int ranks;
  bool spin;
};

class ChaosOf : public ::testing::TestWithParam<Plan> {};
INSTANTIATE_TEST_SUITE_P(Plans, ChaosOf,
                         ::testing::Values(Plan{2, true}, Plan{2, false}, Plan{3, true}, Plan{5, false},
                                           Plan{32, false}),
                         [](const auto& plan) {
                           return fmt::format("{}Ranks{}", plan.param.ranks, plan.param.spin ? "Spinning" : "Sleeping");
                         });

// Each round, every rank runs operations of random length until one of them does something else: throws before it
// comes, calls something different, leaves, or is aborted by a bystander.
TEST_P(ChaosOf, AnyFailureEndsTheRoundForEveryone) {
  const int ranks = GetParam().ranks;
  const int rounds = ranks > 8 ? 60 : 600;
  constexpr int kOperations = 8;
  ThreadGroup group(ranks, {.time_without_progress = testing::kNoLimit, .spin = GetParam().spin});
  std::mt19937 dice(static_cast<unsigned>(ranks));
  for (int round = 0; round < rounds; ++round) {
    const int who = static_cast<int>(dice() % static_cast<unsigned>(ranks));
    const int when = static_cast<int>(dice() % kOperations);
    const int how = static_cast<int>(dice() % 4);
    std::vector<std::size_t> counts;
    for (int i = 0; i < kOperations; ++i) counts.push_back(dice() % 2 == 0 ? dice() % 40 : 300 + dice() % 3000);
    std::atomic<int> completed{0};

    const auto thrown = outcomes(group, [&](Group& member) {
      for (int i = 0; i < kOperations; ++i) {
        const std::size_t count = counts[static_cast<std::size_t>(i)];
        Buffer buffer(count, member.rank() + 1);
        const Piece one = buffer.in_place();
        if (member.rank() == who && i == when) {
          if (how == 0) {
            group.abort(who, "villain");
            throw std::runtime_error("villain");
          }
          if (how == 1) return member.barrier({.tag = "odd"});
          if (how == 2) return group.leave(who);
          // As a watchdog or another thread might, at any moment of the operation.
          std::thread bystander([&] { group.abort(who, "bystander"); });
          try {
            member.all_reduce({}, {&one, 1}, {});
          } catch (...) {
            bystander.join();
            throw;
          }
          bystander.join();
          continue;
        }
        try {
          member.all_reduce({}, {&one, 1}, {});
        } catch (const std::exception& error) {
          group.abort(member.rank(), error.what());
          throw;
        }
        for (const std::int64_t value : buffer.values()) ASSERT_EQ(value, ranks * (ranks + 1) / 2);
        completed.fetch_add(1);
      }
    });
    // Only a bystander can come at a moment that is nobody's.
    if (how != 3) {
      ASSERT_EQ(completed.load(), ranks * when);
    }
    for (int rank = 0; rank < ranks; ++rank) {
      if (rank == who || how == 3) continue;
      const auto& other = thrown[static_cast<std::size_t>(rank)];
      how == 0 ? text_of<Aborted>(other) : text_of<CollectiveMismatch>(other);
    }
    group.reset();
  }
}

// Large moves take long enough to be hit: some participants are moving, others have not begun, others have finished.
// Those that leave free their buffers at once. More participants than cores, so that some come to their turn late.
TEST(Chaos, NobodyLeavesWhileOthersStillMoveItsMemory) {
  constexpr int kRanks = 6;
  constexpr int kRounds = 80;
  constexpr std::size_t kCount = 1 << 16;
  ThreadGroup group(kRanks, testing::patient());
  std::mt19937 dice(1);
  for (int round = 0; round < kRounds; ++round) {
    const int patience = static_cast<int>(dice() % 300);
    std::atomic<int> arrivals{0};
    const auto thrown = outcomes(group, [&](Group& member) {
      std::thread bystander;
      if (member.rank() == 0) {
        bystander = std::thread([&] {
          while (arrivals.load() < kRanks) std::this_thread::yield();
          for (int i = 0; i < patience; ++i) std::this_thread::yield();
          group.abort(0, "bystander");
        });
      }
      try {
        for (int i = 0; i < 20; ++i) {
          Buffer buffer(kCount, member.rank() + 1);
          const Piece one = buffer.in_place();
          arrivals.fetch_add(1);
          member.all_reduce({}, {&one, 1}, {});
          for (const std::int64_t value : buffer.values()) ASSERT_EQ(value, kRanks * (kRanks + 1) / 2);
        }
      } catch (const Aborted&) {
      }
      if (bystander.joinable()) bystander.join();
    });
    for (const auto& one : thrown) ASSERT_EQ(one, nullptr);
    group.reset();
  }
}

}  // namespace chaos_test
}  // namespace brigade::comm
