#include "data/permutation.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "brigade/base/threefry.h"

namespace brigade::data {
namespace {

ThreefryKey as_key(std::array<std::uint32_t, 2> block) { return {.k0 = block[0], .k1 = block[1]}; }

}  // namespace

// jax.random.permutation(fold_in(key(seed), epoch), rows): rounds of sorting by fresh random bits, enough of them that
// equal bits leave no trace.
std::vector<std::int64_t> permutation_of_epoch(std::int64_t seed, std::int64_t epoch, std::int64_t rows) {
  ThreefryKey key{.k0 = 0, .k1 = static_cast<std::uint32_t>(seed)};
  key = as_key(threefry2x32(key, 0, static_cast<std::uint32_t>(epoch)));
  std::vector<std::int64_t> order(static_cast<std::size_t>(rows));
  std::iota(order.begin(), order.end(), std::int64_t{0});
  std::vector<std::pair<std::uint32_t, std::int64_t>> sorted(order.size());
  const int rounds = static_cast<int>(
      std::ceil(3 * std::log(static_cast<double>(std::max<std::int64_t>(1, rows))) / std::log(4294967295.0)));
  for (int round = 0; round < rounds; ++round) {
    const ThreefryKey bits = as_key(threefry2x32(key, std::uint64_t{1}));
    key = as_key(threefry2x32(key, std::uint64_t{0}));
    for (std::size_t i = 0; i < order.size(); ++i) {
      const auto block = threefry2x32(bits, std::uint64_t{i});
      sorted[i] = {block[0] ^ block[1], order[i]};
    }
    std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    std::transform(sorted.begin(), sorted.end(), order.begin(), [](const auto& entry) { return entry.second; });
  }
  return order;
}

}  // namespace brigade::data
