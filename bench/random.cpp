// Draws on one core: random bits against 1 GB/s and against memset of the same buffer, distributions against libtorch's
// own generator.
//
// Every row is the median over rounds of the ratio between ours and its peer, timed one right after the other. All
// draws run on one thread, and the time is what the processor spent on that thread, so other programs on the machine
// take none of it.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <time.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "brigade/random/distributions.h"
#include "brigade/random/permutation.h"
#include "random/kernels.h"
#include "support/report.h"
#include "support/rounds.h"

namespace {

namespace bench = brigade::bench;
namespace random = brigade::random;

constexpr std::int64_t kElements = std::int64_t{1} << 18;  // 1 MB of floats: a weight matrix, and within the caches

struct Contest {
  std::string name;
  std::string unit;
  std::optional<double> goal;
  double units;  // done by one call, in 1e9
  std::function<void()> ours;
  std::function<void()> peer;  // empty when the peer is a fixed limit
  double limit = 0.0;          // in units a second
};

double thread_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// Seconds a call, over calls that fill 5 ms.
double seconds(const std::function<void()>& work) {
  int calls = 0;
  const double start = thread_seconds();
  double took = 0.0;
  do {
    work();
    ++calls;
    took = thread_seconds() - start;
  } while (took < 5e-3);
  return took / calls;
}

bench::Round measured(const Contest& contest, double exchange_ns) {
  return {.exchange_ns = exchange_ns,
          .ours = contest.units / seconds(contest.ours),
          .peer = contest.peer ? contest.units / seconds(contest.peer) : contest.limit};
}

std::vector<Contest> contests() {
  const auto key = random::key(0);
  static std::vector<std::uint32_t> words(kElements);
  static at::Tensor floats = at::empty({kElements});
  const auto floats_span = [] { return std::span(floats.data_ptr<float>(), static_cast<std::size_t>(kElements)); };
  const auto bits = [key] { random::kernels::bits(key, 0, std::span(words)); };
  const auto normal = [=] {
    const float low = std::nextafter(-1.0f, 0.0f);
    random::kernels::normal(key, 0, {{low, 1.0f - low}, -INFINITY, INFINITY}, floats_span());
  };
  const auto uniform = [=] { random::kernels::uniform(key, 0, {0.0f, 1.0f}, floats_span()); };
  const double elements = kElements / 1e9;
  const double bytes = 4 * elements;
  return {
      {"bits against 1 GB/s", "GB/s", 1.0, bytes, bits, {}, 1.0},
      {"bits against memset", "GB/s", {}, bytes, bits, [] { std::memset(words.data(), 1, 4 * words.size()); }},
      {"uniform against torch", "Gvalues/s", 1.0, elements, uniform, [] { floats.uniform_(); }},
      {"normal against torch", "Gvalues/s", 1.0, elements, normal, [] { floats.normal_(); }},
      {"whole call of normal against torch::randn", "Gvalues/s", 1.0, elements,
       [key] { random::normal(key, {kElements}); }, [] { at::randn({kElements}); }},
      {"permutation of 60,000 against torch::randperm",
       "Gvalues/s",
       {},
       60'000 / 1e9,
       [key] { random::permutation(key, 60'000); },
       [] { at::randperm(60'000); }},
  };
}

}  // namespace

int main() {
  at::set_num_threads(1);
  bench::Report report("random");
  const std::vector<Contest> all = contests();
  std::vector<std::vector<bench::Round>> rounds(all.size());
  bench::measure_rounds([&](int, double exchange) {
    for (std::size_t i = 0; i < all.size(); ++i) rounds[i].push_back(measured(all[i], exchange));
  });
  for (std::size_t i = 0; i < all.size(); ++i) {
    bench::Row row = bench::summarise(all[i].name, all[i].unit, rounds[i], bench::Better::kMore);
    row.goal = all[i].goal;
    report.add(std::move(row));
  }
  return report.finish();
}
