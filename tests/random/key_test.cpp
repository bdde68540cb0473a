#include "brigade/random/key.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <limits>
#include <set>
#include <type_traits>
#include <utility>

#include "brigade/base/error.h"
#include "support/errors.h"

namespace brigade::random {
namespace key_test {

static_assert(std::is_aggregate_v<Key> && std::is_trivially_copyable_v<Key> && sizeof(Key) == 8);

TEST(Key, TakesTheLowHalfOfTheSeed) {
  EXPECT_EQ(key(0), (Key{0, 0}));
  EXPECT_EQ(key(-1), (Key{0, 0xFFFFFFFF}));
  EXPECT_EQ(key(std::int64_t{1} << 32 | 5), (Key{0, 5}));
  EXPECT_EQ(key(std::numeric_limits<std::int64_t>::min()), (Key{0, 0}));
}

TEST(Split, GivesTheKeysOfJax) {
  const auto [k1, k2] = split<2>(key(0));
  EXPECT_EQ(k1, (Key{1797259609, 2579123966}));
  EXPECT_EQ(k2, (Key{928981903, 3453687069}));
}

RC_GTEST_PROP(Split, OfMoreKeysStartsWithTheSameOnes, (std::int64_t seed)) {
  const auto few = split<3>(key(seed));
  const auto many = split(key(seed), 100);
  RC_ASSERT(many.size() == 100u);
  for (std::size_t i = 0; i < few.size(); ++i) RC_ASSERT(many[i] == few[i]);
}

RC_GTEST_PROP(Split, GivesDistinctKeys, (std::int64_t seed)) {
  std::set<std::pair<std::uint32_t, std::uint32_t>> seen;
  for (const Key& k : split(key(seed), 1000)) seen.emplace(k.k0, k.k1);
  RC_ASSERT(seen.size() == 1000u);  // threefry is a bijection
}

TEST(Split, OfNothingIsEmpty) { EXPECT_TRUE(split(key(0), 0).empty()); }

TEST(Split, OfANegativeNumberIsAnError) {
  EXPECT_ERROR(split(key(0), -1), InvalidArgument, "random::split: cannot make -1 keys; ask for 0 or more");
}

TEST(FoldIn, GivesTheBlockOfTheNumber) {
  const Key from{1, 2};
  const auto block = threefry2x32(from, 0, 0xFFFFFFFF);
  EXPECT_EQ(fold_in(from, 0xFFFFFFFF), (Key{block[0], block[1]}));
}

TEST(FoldIn, OfANumberThatDoesNotFitIsAnError) {
  EXPECT_ERROR(fold_in(key(0), -1), InvalidArgument, "data is -1");
  EXPECT_ERROR(fold_in(key(0), std::int64_t{1} << 32), InvalidArgument, "fold in a larger one in two parts");
}

}  // namespace key_test
}  // namespace brigade::random
