#include "brigade/base/deadline.h"

#include <gtest/gtest.h>

namespace brigade {
namespace deadline_test {

using namespace std::chrono_literals;

TEST(Deadline, NeverDoesNotExpire) {
  EXPECT_FALSE(Deadline::never().expired());
  EXPECT_EQ(Deadline::never().remaining(), Deadline::Clock::duration::max());
}

TEST(Deadline, ExpiresAtOnceWhenNothingIsLeft) {
  const Deadline past = Deadline::in(-1s);
  EXPECT_TRUE(past.expired());
  EXPECT_EQ(past.remaining(), 0s);
}

TEST(Deadline, CountsDownFromItsTimeout) {
  const Deadline later = Deadline::in(1h);
  EXPECT_FALSE(later.expired());
  EXPECT_GT(later.remaining(), 59min);
  EXPECT_LE(later.remaining(), 1h);
}

TEST(Deadline, DoesNotOverflow) { EXPECT_TRUE(Deadline::in(Deadline::Clock::duration::max()).is_never()); }

}  // namespace deadline_test
}  // namespace brigade
