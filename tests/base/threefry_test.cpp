#include "brigade/base/threefry.h"

#include <gtest/gtest.h>

namespace brigade {
namespace threefry_test {

using Block = std::array<std::uint32_t, 2>;

// Known answers of Random123 (kat_vectors, threefry2x32 with 20 rounds).
TEST(Threefry, GivesTheKnownAnswersOfRandom123) {
  EXPECT_EQ(threefry2x32({0, 0}, 0, 0), (Block{0x6b200159, 0x99ba4efe}));
  EXPECT_EQ(threefry2x32({0xffffffff, 0xffffffff}, 0xffffffff, 0xffffffff), (Block{0x1cb996fc, 0xbb002be7}));
  EXPECT_EQ(threefry2x32({0x13198a2e, 0x03707344}, 0x243f6a88, 0x85a308d3), (Block{0xc4923a9c, 0x483df7a0}));
}

TEST(Threefry, PutsTheHighHalfOfACounterFirst) {
  EXPECT_EQ(threefry2x32({1, 2}, std::uint64_t{0x0000000300000004}), threefry2x32({1, 2}, 3, 4));
}

}  // namespace threefry_test
}  // namespace brigade
