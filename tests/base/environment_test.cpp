#include "brigade/base/environment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "brigade/base/error.h"

namespace brigade {
namespace environment_test {

using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

Environment read(const std::map<std::string, std::string>& variables) {
  return Environment::read([&](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

TEST(Environment, HasDefaultsWhenNothingIsSet) {
  const Environment e = read({});
  EXPECT_FALSE(e.cpu_devices);
  EXPECT_FALSE(e.intra_op_threads);
  EXPECT_FALSE(e.pin_threads);
  EXPECT_EQ(e.deadline, std::chrono::seconds(60));
  EXPECT_EQ(e.log_level, "warn");
}

TEST(Environment, ReadsEveryVariable) {
  const Environment e = read({{"BRIGADE_CPU_DEVICES", "8"},
                              {"BRIGADE_INTRA_OP_THREADS", "2"},
                              {"BRIGADE_PIN_THREADS", "1"},
                              {"BRIGADE_DEADLINE", "2.5"},
                              {"BRIGADE_LOG", "debug"}});
  EXPECT_EQ(e.cpu_devices, 8);
  EXPECT_EQ(e.intra_op_threads, 2);
  EXPECT_TRUE(e.pin_threads);
  EXPECT_EQ(e.deadline, std::chrono::milliseconds(2500));
  EXPECT_EQ(e.log_level, "debug");
}

TEST(Environment, TreatsAnEmptyValueAsUnset) { EXPECT_FALSE(read({{"BRIGADE_CPU_DEVICES", ""}}).cpu_devices); }

TEST(Environment, RefusesWhatCannotBeUsedAndSaysWhatCan) {
  for (const std::string value : {"0", "-1", "two", "1.5", "4 ", "99999999999"}) {
    EXPECT_THAT(
        [&] {
          read({{"BRIGADE_CPU_DEVICES", value}});
        },
        ThrowsMessage<EnvironmentError>(
            AllOf(HasSubstr("BRIGADE_CPU_DEVICES=\"" + value + "\""), HasSubstr("a whole number from 1 to 1024"))));
    EXPECT_THAT(
        [&] {
          read({{"BRIGADE_INTRA_OP_THREADS", value}});
        },
        ThrowsMessage<EnvironmentError>(AllOf(HasSubstr("BRIGADE_INTRA_OP_THREADS=\"" + value + "\""),
                                              HasSubstr("a whole number from 1 to 1024"))));
  }
  EXPECT_THROW(read({{"BRIGADE_DEADLINE", "nan"}}), EnvironmentError);
  EXPECT_THROW(read({{"BRIGADE_DEADLINE", "0"}}), EnvironmentError);
  EXPECT_THROW(read({{"BRIGADE_PIN_THREADS", "2"}}), EnvironmentError);
  EXPECT_THAT(
      [&] {
        read({{"BRIGADE_LOG", "loud"}});
      },
      ThrowsMessage<EnvironmentError>(HasSubstr("\"trace\", \"debug\"")));
}

}  // namespace environment_test
}  // namespace brigade
