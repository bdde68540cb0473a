#include "brigade/random/permutation.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "brigade/base/error.h"
#include "brigade/random/distributions.h"
#include "support/errors.h"

namespace brigade::random {
namespace permutation_test {

TEST(Permutation, IsTheKnownOne) {
  EXPECT_TRUE(at::equal(permutation(key(0), 8), at::tensor({0, 1, 5, 6, 4, 3, 2, 7}, at::kLong)));
}

RC_GTEST_PROP(Permutation, HoldsEveryNumberOnce, (std::int64_t seed)) {
  const auto n = *rc::gen::inRange<std::int64_t>(0, 5000);
  const at::Tensor order = permutation(key(seed), n);
  RC_ASSERT(order.scalar_type() == at::kLong);
  RC_ASSERT(at::equal(std::get<0>(order.sort()), at::arange(n)));
}

// Two rounds of a stable sort by the bits, with the library's sort.
TEST(Permutation, SortsByTheBitsOfEachRound) {
  constexpr std::int64_t kCount = 100'000;
  std::vector<std::int64_t> order(kCount);
  std::iota(order.begin(), order.end(), 0);
  Key from = key(9);
  for (int round = 0; round < 2; ++round) {
    const auto [next, sub] = split<2>(from);
    from = next;
    const at::Tensor words = bits(sub, {kCount});
    const auto* sort_keys = reinterpret_cast<const std::uint32_t*>(words.data_ptr<int>());
    std::vector<std::size_t> places(kCount);
    std::iota(places.begin(), places.end(), 0);
    std::stable_sort(places.begin(), places.end(), [&](auto a, auto b) { return sort_keys[a] < sort_keys[b]; });
    std::vector<std::int64_t> sorted(kCount);
    for (std::size_t i = 0; i < places.size(); ++i) sorted[i] = order[places[i]];
    order = sorted;
  }
  EXPECT_TRUE(at::equal(permutation(key(9), kCount), at::tensor(order, at::kLong)));
}

TEST(Permutation, GivesEveryOrderEquallyOften) {
  constexpr int kDraws = 12'000;
  std::map<std::string, int> counts;
  for (const Key& k : split(key(11), kDraws)) {
    const at::Tensor order = permutation(k, 3);
    std::string name;
    for (int i = 0; i < 3; ++i) name += std::to_string(order.data_ptr<std::int64_t>()[i]);
    ++counts[name];
  }
  ASSERT_EQ(counts.size(), 6u);
  for (const auto& [order, count] : counts) EXPECT_NEAR(count, kDraws / 6, 5 * std::sqrt(kDraws * 5.0 / 36)) << order;
}

TEST(Permutation, OfATensorMovesItsSlicesTogether) {
  const at::Tensor x = at::arange(12).reshape({4, 3});
  EXPECT_TRUE(at::equal(permutation(key(0), x), x.index_select(0, permutation(key(0), 4))));
  EXPECT_TRUE(at::equal(permutation(key(0), x, -1), x.index_select(1, permutation(key(0), 3))));
}

TEST(Permutation, RefusesWhatHasNoOrder) {
  EXPECT_EQ(permutation(key(0), 0).numel(), 0);
  EXPECT_ERROR(permutation(key(0), -1), InvalidArgument, "cannot order -1 elements; give 0 to 4294967296");
  EXPECT_ERROR(permutation(key(0), (std::int64_t{1} << 32) + 1), InvalidArgument, "cannot order 4294967297 elements");
  EXPECT_ERROR(permutation(key(0), at::zeros({})), ShapeError, "shape [] has no axis 0");
  EXPECT_ERROR(permutation(key(0), at::zeros({2, 3}), 2), ShapeError, "shape [2, 3] has no axis 2 to reorder");
}

}  // namespace permutation_test
}  // namespace brigade::random
