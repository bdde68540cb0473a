#include "guard/state.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "brigade/base/error.h"
#include "support/errors.h"

namespace brigade::guard {
namespace state_test {

using nlohmann::json;

TEST(State, IsReadAsItWasWritten) {
  const json state = {{"step", 7},
                      {"largest", std::numeric_limits<std::int64_t>::max()},
                      {"smallest", std::numeric_limits<std::int64_t>::min()},
                      {"unsigned", std::numeric_limits<std::uint64_t>::max()},
                      {"numbers", {0.1, 1e-320, std::nextafter(1.0, 2.0), 1.7976931348623157e308, -0.0}},
                      {"text", "步骤 \"\\ \n \u001b"},
                      {"nothing", nullptr},
                      {"nested", {{"a", {true, false, json::object(), json::array()}}}}};
  const json again = parse_state("s", to_text(state));
  EXPECT_EQ(again, state);
  EXPECT_TRUE(std::signbit(again.at("numbers").at(4).get<double>()));
  EXPECT_EQ(to_text(again), to_text(state));
}

TEST(State, WhatJsonCannotHoldIsRefusedByItsPath) {
  for (const double value : {std::nan(""), HUGE_VAL, -HUGE_VAL}) {
    expect_error<InvalidArgument>(
        [&] {
          to_text({{"metrics", {{"losses", {0.5, value}}}}});
        },
        {"state.metrics.losses[1]", "not finite"});
  }
  expect_error<InvalidArgument>([&] { to_text({{"name", "\xff"}}); }, {"no UTF-8"});
  expect_error<InvalidArgument>([&] { to_text({{"key", json::binary({1, 2})}}); }, {"state.key", "bytes"});
  expect_error<InvalidArgument>([&] { to_text(json::array()); }, {"no JSON object"});
  expect_error<InvalidArgument>([&] { to_text({{"large", std::string(kMaxStateBytes, 'x')}}); }, {"as a tensor"});
  json deep = 1;
  for (int i = 0; i <= kMaxStateDepth; ++i) deep = {{"a", deep}};
  expect_error<InvalidArgument>([&] { to_text(deep); }, {"levels deep"});
}

TEST(State, OfAHostileFileIsRefused) {
  const std::string deep(100'000, '[');
  for (const auto& [text, what] :
       std::vector<std::pair<std::string, std::string>>{{"", "is no JSON"},
                                                        {"[1]", "is no JSON object"},
                                                        {"{\"a\":1", "is no JSON"},
                                                        {"{\"a\":1}x", "is no JSON"},
                                                        {"{\"a\":1e999}", "is no JSON"},
                                                        {"{\"a\":NaN}", "is no JSON"},
                                                        {"{\"a\":\"\xff\"}", "is no JSON"},
                                                        {"{\"a\":1,\"a\":2}", "a key twice"},
                                                        {"{\"b\":{\"a\":1,\"\\u0061\":2}}", "a key twice"},
                                                        {"{\"a\":" + deep, "more than 32 levels"},
                                                        {std::string(kMaxStateBytes + 1, ' '), "above the limit"}}) {
    expect_error<DataError>([&] { parse_state("the file", text); }, {"the file: ", what});
  }
}

}  // namespace state_test
}  // namespace brigade::guard
