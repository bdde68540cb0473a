#include "brigade/base/log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

namespace brigade {
namespace log_test {

using testing::ExitedWithCode;

// The level is read once per process, so each test logs in a process of its own, whose standard error is compared.
[[noreturn]] void log_everything() {
  log::debug("d");
  log::info("i");
  log::warn("w");
  log::error("e");
  std::exit(0);
}

TEST(LogDeathTest, PrintsWarningsAndErrorsByDefault) {
  EXPECT_EXIT(
      {
        unsetenv("BRIGADE_LOG");
        log_everything();
      },
      ExitedWithCode(0), testing::StrEq("brigade: warning: w\nbrigade: error: e\n"));
}

TEST(LogDeathTest, PrintsFromTheLevelOfBrigadeLogUpwards) {
  EXPECT_EXIT(
      {
        setenv("BRIGADE_LOG", "info", 1);
        log_everything();
      },
      ExitedWithCode(0), testing::StrEq("brigade: info: i\nbrigade: warning: w\nbrigade: error: e\n"));
  EXPECT_EXIT(
      {
        setenv("BRIGADE_LOG", "off", 1);
        log_everything();
      },
      ExitedWithCode(0), testing::StrEq(""));
}

TEST(LogDeathTest, WarnsOncePerKey) {
  EXPECT_EXIT(
      {
        unsetenv("BRIGADE_LOG");
        log::warn_once("a", "first");
        log::warn_once("a", "second");
        log::warn_once("b", "other");
        std::exit(0);
      },
      ExitedWithCode(0), testing::StrEq("brigade: warning: first\nbrigade: warning: other\n"));
}

}  // namespace log_test
}  // namespace brigade
