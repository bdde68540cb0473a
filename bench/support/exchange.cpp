#include "support/exchange.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>
#include <vector>

#include "support/pin.h"
#include "support/rounds.h"

namespace brigade::bench {
namespace {

constexpr int kSeries = 9;
constexpr std::uint32_t kExchanges = 2000;  // there and back, of a series: below two milliseconds

std::vector<double> all_taken;

struct alignas(64) Mailbox {
  std::atomic<std::uint32_t> value{0};
};

}  // namespace

double exchange_nanoseconds() {
  Mailbox there;
  Mailbox back;
  constexpr std::uint32_t kAll = kSeries * kExchanges;
  std::thread echo([&] {
    const Pinned pinned(1);
    for (std::uint32_t i = 1; i <= kAll; ++i) {
      while (there.value.load(std::memory_order_acquire) != i) continue;
      back.value.store(i, std::memory_order_release);
    }
  });
  const Pinned pinned(0);
  std::vector<double> series;
  std::uint32_t sent = 0;
  for (int s = 0; s < kSeries; ++s) {
    const auto start = std::chrono::steady_clock::now();
    for (std::uint32_t i = 0; i < kExchanges; ++i) {
      there.value.store(++sent, std::memory_order_release);
      while (back.value.load(std::memory_order_acquire) != sent) continue;
    }
    series.push_back(std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count() /
                     (2 * kExchanges));
  }
  echo.join();
  const double taken = median(series);
  all_taken.push_back(taken);
  return taken;
}

double close_cores_nanoseconds() {
  constexpr double kClose = 120;
  if (all_taken.empty()) return kClose;
  std::vector<double> sorted = all_taken;
  std::sort(sorted.begin(), sorted.end());
  return std::max(kClose, 1.5 * sorted[sorted.size() / 4]);
}

}  // namespace brigade::bench
