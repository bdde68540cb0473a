// Bodies that throw, and devices that do not do what the others do.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <thread>

#include "brigade/brigade.h"
#include "support/nine_devices.h"
#include "support/threads.h"

namespace brigade {
namespace pmap_throw_test {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::ThrowsMessage;

struct Custom : std::exception {
  explicit Custom(std::int64_t from) : position(from) {}
  const char* what() const noexcept override { return "custom text"; }
  std::int64_t position;
};

TEST(PmapThrow, TheCallerGetsTheOriginalExceptionWhileOthersWaitInACollective) {
  const auto f = pmap(
      [](torch::Tensor x) {
        if (lax::axis_index("i") == 2) throw Custom(2);
        return lax::psum(x, "i");
      },
      {.axis_name = "i"});
  try {
    f(torch::ones({4}));
    FAIL() << "nothing was thrown";
  } catch (const Custom& e) {
    EXPECT_STREQ(e.what(), "custom text");
    EXPECT_EQ(e.position, 2);
  }
  const auto report = last_failure();
  ASSERT_TRUE(report);
  ASSERT_EQ(report->failures.size(), 1U);
  EXPECT_EQ(report->failures[0].position, 2);
  EXPECT_EQ(report->failures[0].device, devices()[2]);
  EXPECT_EQ(report->failures[0].message, "custom text");
  EXPECT_THAT(report->failures[0].type, HasSubstr("Custom"));
  EXPECT_EQ(report->axis, "i");
  EXPECT_THAT(to_string(report->site), testing::StartsWith("pmap_throw_test.cpp:"));
}

TEST(PmapThrow, WhoeverWaitsIsReleasedWithinATenthOfASecond) {
  std::atomic<int> waiting{0};
  std::chrono::steady_clock::time_point thrown;
  const auto f = pmap(
      [&](torch::Tensor x) {
        if (lax::axis_index("i") != 2) {
          ++waiting;
          return lax::psum(x, "i");
        }
        while (waiting < 3) std::this_thread::yield();
        std::this_thread::sleep_for(std::chrono::milliseconds(20));  // so that they sleep already
        thrown = std::chrono::steady_clock::now();
        throw Custom(2);
      },
      {.axis_name = "i"});
  // The best of some, as the machine may be busy with something else.
  auto best = std::chrono::steady_clock::duration::max();
  for (int round = 0; round < 5; ++round) {
    waiting = 0;
    EXPECT_THROW(f(torch::ones({4})), Custom);
    best = std::min(best, std::chrono::steady_clock::now() - thrown);
    EXPECT_EQ(last_failure()->released, (std::vector{0, 1, 3}));
  }
  EXPECT_LT(best, std::chrono::milliseconds(100));
}

TEST(PmapThrow, WhatIsNoStdExceptionSurvivesToo) {
  const auto f = pmap([](torch::Tensor) -> int { throw 42; });
  try {
    f(torch::ones({3}));
    FAIL() << "nothing was thrown";
  } catch (int value) {
    EXPECT_EQ(value, 42);
  }
}

TEST(PmapThrow, AnErrorOfAnOperatorKeepsItsType) {
  const auto f = pmap([](torch::Tensor x) { return torch::matmul(x, torch::ones({7, 7})); });
  EXPECT_THROW(f(torch::ones({3, 2, 2})), c10::Error);
}

TEST(PmapThrow, TheCallerIsReleasedWhenTheLastDeviceHasLeft) {
  // Nothing can interrupt a device inside an operator: it is waited for, to its next collective or to its end.
  std::atomic<int> inside{0}, computed{0};
  const torch::Tensor large = torch::ones({1000, 1000});
  const auto f = pmap(
      [&](torch::Tensor x) {
        const auto position = lax::axis_index("i");
        if (position == 1) {
          while (inside < 3) std::this_thread::yield();
          throw Custom(1);
        }
        ++inside;
        torch::Tensor product = large;
        for (int i = 0; i < 3; ++i) product = torch::mm(product, large) / 1000;
        if (product[999][999].item<float>() == 1) ++computed;
        if (position == 2) x = lax::psum(x, "i");
        if (position == 2) ++computed;
        return x;
      },
      {.axis_name = "i"});
  EXPECT_THROW(f(torch::ones({4})), Custom);
  EXPECT_EQ(computed, 3);
  EXPECT_EQ(last_failure()->released, std::vector{2});
}

TEST(PmapThrow, TheFirstInTimeIsPrimaryAndTheOthersAreReported) {
  const auto f = pmap(
      [](torch::Tensor x) {
        x = lax::psum(x, "i");
        if (lax::axis_index("i") == 2) throw Custom(2);
        if (lax::axis_index("i") == 1) {
          std::this_thread::sleep_for(std::chrono::milliseconds(100));
          throw std::runtime_error("later");
        }
        return lax::psum(x, "i");
      },
      {.axis_name = "i"});
  EXPECT_THROW(f(torch::ones({4})), Custom);
  const auto report = last_failure();
  ASSERT_EQ(report->failures.size(), 2U);
  EXPECT_EQ(report->failures[0].position, 2);
  EXPECT_EQ(report->failures[1].message, "later");
  EXPECT_EQ(report->released, (std::vector{0, 3}));
}

// Expects the call to fail with CollectiveMismatch on each of `devices` devices.
template <class Call, class Matcher>
void expect_mismatch(Call call, std::size_t devices, Matcher text) {
  EXPECT_THAT(call, ThrowsMessage<CollectiveMismatch>(text));
  const auto report = last_failure();
  EXPECT_EQ(report->failures.size(), devices);
  for (const auto& failure : report->failures) EXPECT_EQ(failure.type, "brigade::CollectiveMismatch");
  EXPECT_TRUE(report->released.empty());
}

TEST(PmapThrow, ABodyThatReturnsEarlyWhileOthersWaitIsAnErrorThatNamesIt) {
  const auto f = pmap(
      [](torch::Tensor x) {
        x = lax::pmean(x, "i");
        if (lax::axis_index("i") == 1) return x;
        return lax::psum(x, "i");
      },
      {.axis_name = "i"});
  expect_mismatch([&] { f(torch::ones({3})); }, 2,
                  AllOf(HasSubstr("axis \"i\": operation 2 can never complete: rank 1 has left the group; its last was "
                                  "operation 1, all_reduce \"pmean\""),
                        HasSubstr("psum"), HasSubstr("pmap_throw_test.cpp:")));
}

TEST(PmapThrow, DifferentCollectivesShowBothSides) {
  const auto f = pmap([](torch::Tensor x) { return lax::axis_index("i") == 0 ? lax::pmax(x, "i") : lax::psum(x, "i"); },
                      {.axis_name = "i"});
  expect_mismatch(
      [&] { f(torch::ones({3})); }, 3,
      AllOf(HasSubstr("axis \"i\""), HasSubstr("psum"), HasSubstr("pmax"), HasSubstr("pmap_throw_test.cpp")));
}

TEST(PmapThrow, CollectivesInAnotherOrderShowBothSides) {
  const auto f = pmap(
      [](torch::Tensor x) {
        if (lax::axis_index("i") == 2) {
          const torch::Tensor sum = lax::psum(x, "i");
          return lax::all_gather(x, "i").sum() + sum;
        }
        const torch::Tensor all = lax::all_gather(x, "i");
        return lax::psum(x, "i") + all.sum();
      },
      {.axis_name = "i"});
  expect_mismatch([&] { f(torch::ones({3})); }, 3,
                  AllOf(HasSubstr("different operations"), HasSubstr("all_reduce \"psum\""), HasSubstr("all_gather"),
                        HasSubstr("in the same order (this was operation 1)")));
}

TEST(PmapThrow, CollectivesOverTheAxesOfAMeshInAnotherOrderWaitForOneAnother) {
  const auto f = pmap(
      [](torch::Tensor x) {
        const bool host_first = lax::axis_index("host") == lax::axis_index("device");
        x = lax::psum(x, host_first ? "host" : "device");
        return lax::psum(x, host_first ? "device" : "host");
      },
      {.mesh = Mesh{{"host", 2}, {"device", 2}}});
  expect_mismatch([&] { f(torch::ones({4})); }, 4,
                  AllOf(HasSubstr("axis \"host, device\""), HasSubstr("wait for one another in different groups"),
                        HasSubstr("in the same order"), HasSubstr("pmap_throw_test.cpp:")));
}

TEST(PmapThrow, AnUnnamedAxisIsCalledSo) {
  const auto outer = pmap([](torch::Tensor x) { return pmap([](torch::Tensor y) { return y; })(x)[0]; });
  EXPECT_THAT(
      [&] {
        outer(torch::ones({2, 2}));
      },
      ThrowsMessage<AxisError>(AllOf(HasSubstr("a pmap over an unnamed axis was called inside the body of one "
                                               "over an unnamed axis"),
                                     Not(HasSubstr("\"\"")))));
}

TEST(PmapThrow, DifferentShapesAndDtypesShowBothSides) {
  const auto shapes =
      pmap([](torch::Tensor) { return lax::psum(torch::ones({2 + lax::axis_index("i")}), "i"); }, {.axis_name = "i"});
  expect_mismatch([&] { shapes(torch::ones({2})); }, 2, AllOf(HasSubstr("float32[2]"), HasSubstr("float32[3]")));
  const auto transposed = pmap(
      [](torch::Tensor) {
        return lax::psum(lax::axis_index("i") == 0 ? torch::ones({2, 3}) : torch::ones({3, 2}), "i");
      },
      {.axis_name = "i"});
  EXPECT_THAT([&] { transposed(torch::ones({2})); },
              ThrowsMessage<CollectiveMismatch>(AllOf(HasSubstr("[2, 3]"), HasSubstr("[3, 2]"))));
  const auto widened =
      pmap([](torch::Tensor x) { return lax::psum(lax::axis_index("i") == 0 ? x.to(torch::kHalf) : x, "i"); },
           {.axis_name = "i"});
  EXPECT_THAT([&] { widened(torch::ones({2})); },
              ThrowsMessage<CollectiveMismatch>(AllOf(HasSubstr("float16[]"), HasSubstr("float32[]"))));
  const auto complex = pmap(
      [](torch::Tensor) {
        return lax::axis_index("i") == 0 ? lax::psum(torch::ones({3}, torch::kComplexFloat), "i")
                                         : lax::psum(torch::ones({3, 2}), "i");
      },
      {.axis_name = "i"});
  EXPECT_THAT([&] { complex(torch::ones({2})); },
              ThrowsMessage<CollectiveMismatch>(AllOf(HasSubstr("complex64[3]"), HasSubstr("float32[3, 2]"))));
  const auto dtypes =
      pmap([](torch::Tensor x) { return lax::psum(lax::axis_index("i") == 0 ? x.to(torch::kInt) : x, "i"); },
           {.axis_name = "i"});
  expect_mismatch([&] { dtypes(torch::ones({4})); }, 4, AllOf(HasSubstr("int32"), HasSubstr("float32")));
}

TEST(PmapThrow, TwoThousandCallsWithRandomThrowsNeverHangNorLeakThreads) {
  // Position to throw at, or none, and the collective before which it throws, drawn anew for every call.
  std::mt19937 draw(7);
  std::int64_t thrower = -1;
  int before = 0;
  const auto f = pmap(
      [&](torch::Tensor x) {
        for (int round = 0; round < 3; ++round) {
          if (lax::axis_index("i") == thrower && round == before) throw Custom(thrower);
          x = lax::psum(x, "i") / 2;
        }
        return x;
      },
      {.axis_name = "i"});
  f(torch::ones({9, 3}));
  const int threads = threads_of_this_process();
  for (int call = 0; call < 2000; ++call) {
    const int devices = 1 + static_cast<int>(draw() % 9);
    thrower = static_cast<std::int64_t>(draw() % 12) - 1;
    before = static_cast<int>(draw() % 3);
    const torch::Tensor x = torch::ones({devices, 3});
    if (thrower >= 0 && thrower < devices) {
      EXPECT_THROW(f(x), Custom);
    } else {
      const float expected = std::pow(devices / 2.0F, 3.0F);
      EXPECT_EQ(f(x)[devices - 1][0].item<float>(), expected);
    }
  }
  EXPECT_EQ(threads_of_this_process(), threads);
}

TEST(PmapThrow, AnExceptionInOneBackwardReleasesTheOthers) {
  // Device 1 meets the gradient of pmax first, the others wait in the backward of psum.
  const auto f = pmap(
      [](torch::Tensor x) {
        return grad([](const torch::Tensor& v) {
          const torch::Tensor largest = lax::pmax(v, "i");
          const torch::Tensor sum = lax::psum(v.square(), "i");
          return lax::axis_index("i") == 1 ? (sum + largest).sum() : sum.sum();
        })(x);
      },
      {.axis_name = "i"});
  EXPECT_THAT(
      [&] {
        f(torch::ones({3, 2}));
      },
      ThrowsMessage<InvalidArgument>(AllOf(HasSubstr("pmax has no gradient"), HasSubstr("device 1"))));
  EXPECT_THAT(last_failure()->released, testing::IsSubsetOf({0, 2}));
}

TEST(PmapThrow, ACollectiveOfBackwardNeverMeetsOneOfForward) {
  // Device 0 does not differentiate through the sum, so its own psum would pair with the others' backward.
  const auto f = pmap(
      [](torch::Tensor x) {
        const torch::Tensor g = grad([](const torch::Tensor& v) {
          return lax::psum(lax::axis_index("i") == 0 ? v.detach() : v, "i").sum() + v.sum();
        })(x);
        return lax::psum(g, "i");
      },
      {.axis_name = "i"});
  EXPECT_THAT(
      [&] {
        f(torch::ones({3, 2}));
      },
      ThrowsMessage<CollectiveMismatch>(AllOf(HasSubstr("\"psum\""), HasSubstr("\"psum of what requires grad\""))));
}

TEST(PmapThrow, ACollectiveThatOneDevicesBackwardPrunesIsAnErrorAndNoHang) {
  // On device 0 the sum depends on x, which requires grad, but not on what is differentiated inside.
  const auto f = pmap(
      [](torch::Tensor x, torch::Tensor p) {
        return grad([&](const torch::Tensor& v) {
          return (lax::psum(lax::axis_index("i") == 0 ? x : x * v, "i") + v).sum();
        })(p);
      },
      {.axis_name = "i"});
  EXPECT_THAT(
      [&] {
        f(torch::ones({3, 2}).requires_grad_(), torch::ones({3, 2}));
      },
      ThrowsMessage<CollectiveMismatch>(AllOf(HasSubstr("psum in backward"), HasSubstr("rank 0 has left"))));
}

TEST(PmapThrow, OnePmapMayBeCalledFromSeveralThreads) {
  const auto f = pmap(
      [](torch::Tensor x, bool fail) {
        if (fail && lax::axis_index("i") == 1) throw Custom(1);
        return lax::psum(x, "i");
      },
      {.axis_name = "i"});
  std::atomic<int> wrong{0};
  std::vector<std::thread> users;
  for (int user = 0; user < 4; ++user) {
    users.emplace_back([&, user] {
      for (int call = 0; call < 100; ++call) {
        const bool fail = (user + call) % 3 == 0;
        try {
          const auto out = f(torch::full({4}, float(user)), fail);
          wrong += fail || out[3].item<float>() != 4.0F * float(user);
        } catch (const Custom&) {
          wrong += !fail;
        }
      }
    });
  }
  for (auto& user : users) user.join();
  EXPECT_EQ(wrong, 0);
}

using PmapThrowDeathTest = testing::Test;

TEST(PmapThrowDeathTest, TheLogSaysWhereItFailedAndWhatSomeOthersThrew) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(
      {
        try {
          pmap(
              [](torch::Tensor x) {
                lax::psum(x, "i");
                const auto position = lax::axis_index("i");
                std::this_thread::sleep_for(std::chrono::milliseconds(position == 2 ? 0 : 200));
                if (position != 0) throw std::out_of_range("as position " + std::to_string(position % 8));
                lax::psum(x, "i");
              },
              {.axis_name = "i"})(torch::ones({9}));
        } catch (const std::out_of_range&) {
          std::_Exit(7);
        }
      },
      testing::ExitedWithCode(7),
      AllOf(HasSubstr("axis \"i\" at pmap_throw_test.cpp:"),
            HasSubstr("position 2 (cpu:2) failed first, with std::out_of_range; position "),
            HasSubstr(" threw std::out_of_range: as position "), HasSubstr("; and 4 more threw")));
}

TEST(PmapThrowDeathTest, AnUnnamedAxisThatFailsIsLoggedAsOne) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(
      {
        try {
          pmap([](torch::Tensor) { throw Custom(0); })(torch::ones({2}));
        } catch (const Custom&) {
          std::_Exit(7);
        }
      },
      testing::ExitedWithCode(7),
      AllOf(HasSubstr("an unnamed axis at pmap_throw_test.cpp:"), HasSubstr("the same at position")));
}

TEST(PmapThrowDeathTest, ADeviceThatDoesNotArriveInTimeIsAnErrorThatListsWhoIsWhere) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(
      {
        setenv("BRIGADE_DEADLINE", "0.1", 1);
        try {
          pmap(
              [](torch::Tensor x) {
                if (lax::axis_index("i") == 1) std::this_thread::sleep_for(std::chrono::milliseconds(600));
                return lax::psum(x, "i");
              },
              {.axis_name = "i"})(torch::ones({3}));
        } catch (const DeadlineExceeded& error) {
          std::fputs(error.what(), stderr);
          std::_Exit(7);
        }
      },
      testing::ExitedWithCode(7),
      AllOf(HasSubstr("axis \"i\": nobody made progress for 0.1 s in operation 1"),
            HasSubstr("rank 1 has not arrived, before its first operation"), HasSubstr("all_reduce \"psum\""),
            HasSubstr("pmap_throw_test.cpp:")));
}

}  // namespace pmap_throw_test
}  // namespace brigade
