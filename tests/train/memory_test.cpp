// How much memory a step takes, by the allocator's own counts.
#include <c10/core/CPUAllocator.h>

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <cstring>

#include "brigade/optim/adam.h"
#include "train/support.h"

namespace brigade::training {
namespace memory_test {

using namespace testing;

// Counts the bytes of every CPU tensor of this process.
class CountingAllocator : public at::Allocator {
 public:
  // One for the process, from its first use on.
  static CountingAllocator& instance() {
    static CountingAllocator* own = [] {
      auto* counting = new CountingAllocator(*c10::GetCPUAllocator());  // NOLINT(cppcoreguidelines-owning-memory)
      c10::SetCPUAllocator(counting, /*priority=*/100);
      return counting;
    }();
    return *own;
  }

  // The most bytes that were there at once while `f` ran, over those that were there before.
  template <class F>
  std::int64_t peak_of(F f) {
    const std::int64_t before = now_;
    peak_ = before;
    f();
    return peak_ - before;
  }

  // The size of a block stands before it, as some of libtorch's callers want a block to be its own context.
  at::DataPtr allocate(std::size_t bytes) const override {
    auto* const base = static_cast<std::byte*>(inner_.raw_allocate(kHeader + bytes));
    std::memcpy(base, &bytes, sizeof bytes);
    const std::int64_t all = now_ += static_cast<std::int64_t>(bytes);
    for (std::int64_t seen = peak_; all > seen && !peak_.compare_exchange_weak(seen, all);) continue;
    void* const data = base + kHeader;
    return {data, data, &free, at::kCPU};
  }
  at::DeleterFnPtr raw_deleter() const override { return &free; }

 private:
  static constexpr std::size_t kHeader = 64;  // the alignment of blocks

  explicit CountingAllocator(at::Allocator& inner) : inner_(inner) {}

  static void free(void* data) {
    std::byte* const base = static_cast<std::byte*>(data) - kHeader;
    std::size_t bytes = 0;
    std::memcpy(&bytes, base, sizeof bytes);
    instance().now_ -= static_cast<std::int64_t>(bytes);
    instance().inner_.raw_deallocate(base);
  }

  at::Allocator& inner_;
  mutable std::atomic<std::int64_t> now_{0};
  mutable std::atomic<std::int64_t> peak_{0};
};

constexpr std::int64_t kInputs = 300, kHidden = 700;

// What a trainer and two of its steps take.
std::int64_t peak_with(int count, std::int64_t logical_shards = 0) {
  const DataParallelOptions options = {.optimizer = optim::adam({}),
                                       .per_device_batch = logical_shards == 0 ? 64 : 0,
                                       .global_batch = logical_shards == 0 ? 0 : 64 * logical_shards,
                                       .logical_shards = logical_shards,
                                       .devices = first_devices(count)};
  const Mlp model = make_mlp(kInputs, kHidden);
  const Rows rows = make_rows(64 * std::max<std::int64_t>(count, logical_shards), 0, kInputs);
  return CountingAllocator::instance().peak_of([&] {
    DataParallel trainer(model, options);
    for (int step = 0; step < 2; ++step) trainer.step(rows, mean_loss);
  });
}

// Rows, activations and gradients of one device.
std::int64_t peak_of_one_backward() {
  Mlp model = make_mlp(kInputs, kHidden);
  tree::for_each([](const tree::Path&, at::Tensor& t) { t.requires_grad_(); }, model);
  const Rows rows = make_rows(64, 0, kInputs);
  return CountingAllocator::instance().peak_of([&] {
    const Rows own = {rows.x.clone(), rows.y.clone()};
    const auto gradients = torch::autograd::grad({mean_loss(model, own)}, tree::flatten(model));
  });
}

TEST(Memory, OfEightDevicesIsOneCopyOfParametersAndStateAndEightOfWhatAStepNeeds) {
  const std::int64_t one = peak_with(1), eight = peak_with(8);
  const std::int64_t work = peak_of_one_backward();
  RecordProperty("one_device_bytes", std::to_string(one));
  RecordProperty("eight_devices_bytes", std::to_string(eight));
  EXPECT_LE(static_cast<double>(eight), 1.3 * static_cast<double>(one + 7 * work));
  EXPECT_GT(eight, one);
}

// Partial sums are a binary counter: 64 leaves on one device take seven buffers at most, not 64.
TEST(Memory, OfPartialSumsGrowsWithTheLogarithmOfTheLeaves) {
  const std::int64_t parameters = (kInputs * kHidden + kHidden + kHidden * 5 + 5) * 4;
  const std::int64_t one = peak_with(1, 1), many = peak_with(1, 64);
  EXPECT_LE(many - one, 7 * parameters + parameters / 2);
}

}  // namespace memory_test
}  // namespace brigade::training
