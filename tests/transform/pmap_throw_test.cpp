// Bodies that throw, and devices that do not do what the others do.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <random>
#include <thread>

#include "brigade/brigade.h"
#include "support/nine_devices.h"
#include "support/threads.h"

namespace brigade {
namespace {

using testing::AllOf;

using testing::HasSubstr;
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
  std::atomic<int> computed{0};
  const auto f = pmap(
      [&](torch::Tensor x) {
        const auto position = lax::axis_index("i");
        if (position == 1) throw Custom(1);
        std::this_thread::sleep_for(std::chrono::milliseconds(30));
        ++computed;
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

TEST(PmapThrow, ABodyThatReturnsEarlyWhileOthersWaitIsAnErrorThatNamesIt) {
  const auto f = pmap(
      [](torch::Tensor x) {
        if (lax::axis_index("i") == 1) return x;
        return lax::psum(x, "i");
      },
      {.axis_name = "i"});
  EXPECT_THAT([&] { f(torch::ones({3})); }, ThrowsMessage<CollectiveMismatch>(AllOf(
                                                HasSubstr("can never complete: rank 1 has left"), HasSubstr("psum"))));
}

TEST(PmapThrow, DifferentCollectivesShowBothSides) {
  const auto f = pmap([](torch::Tensor x) { return lax::axis_index("i") == 0 ? lax::pmax(x, "i") : lax::psum(x, "i"); },
                      {.axis_name = "i"});
  EXPECT_THAT(
      [&] { f(torch::ones({2})); },
      ThrowsMessage<CollectiveMismatch>(AllOf(HasSubstr("psum"), HasSubstr("pmax"), HasSubstr("pmap_throw_test.cpp"))));
}

TEST(PmapThrow, DifferentShapesAndDtypesShowBothSides) {
  const auto shapes =
      pmap([](torch::Tensor) { return lax::psum(torch::ones({2 + lax::axis_index("i")}), "i"); }, {.axis_name = "i"});
  EXPECT_THAT([&] { shapes(torch::ones({2})); },
              ThrowsMessage<CollectiveMismatch>(AllOf(HasSubstr("float32[2]"), HasSubstr("float32[3]"))));
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
  EXPECT_THAT([&] { dtypes(torch::ones({2})); },
              ThrowsMessage<CollectiveMismatch>(AllOf(HasSubstr("int32"), HasSubstr("float32"))));
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

}  // namespace
}  // namespace brigade
