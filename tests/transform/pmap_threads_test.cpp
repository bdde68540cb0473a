// Pmaps from several threads at once, and from where they must not be called.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <thread>

#include "brigade/brigade.h"
#include "support/nine_devices.h"

namespace brigade {
namespace pmap_threads_test {

using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

TEST(PmapThreads, ManyPmapsOverOverlappingDevicesFromManyThreadsTakeTurns) {
  const auto d = [](int i) { return devices()[static_cast<std::size_t>(i)]; };
  const auto sum = [](torch::Tensor x) {
    for (int round = 0; round < 3; ++round) x = lax::psum(x, "i") - lax::pmean(x, "i");
    return x;
  };
  // Every pair shares devices, in different orders.
  const std::vector<std::vector<Device>> sets = {
      {d(0), d(1), d(2), d(3)}, {d(3), d(2), d(1), d(0)}, {d(5), d(0)}, {d(8), d(7), d(5), d(1), d(2)}};
  std::atomic<int> wrong{0};
  std::vector<std::thread> users;
  for (std::size_t user = 0; user < 2 * sets.size(); ++user) {
    users.emplace_back([&, user] {
      const auto& mine = sets[user % sets.size()];
      const auto n = static_cast<std::int64_t>(mine.size());
      const auto f = pmap(sum, {.axis_name = "i", .devices = mine});
      for (int call = 0; call < 50; ++call) {
        const auto value = static_cast<double>(user + 1);
        const auto out = f(torch::full({n}, value, torch::kDouble));
        // Each round takes x on n devices to (n - 1) x.
        for (std::int64_t i = 0; i < n; ++i) wrong += out[i].item<double>() != std::pow(n - 1, 3) * value;
      }
    });
  }
  for (auto& user : users) user.join();
  EXPECT_EQ(wrong, 0);
}

TEST(PmapThreads, BackwardPassesFromSeveralThreadsTakeTurnsToo) {
  const auto f = pmap([](torch::Tensor x) { return lax::psum(x.square(), "i"); }, {.axis_name = "i"});
  std::atomic<int> wrong{0};
  std::vector<std::thread> users;
  for (int user = 0; user < 4; ++user) {
    users.emplace_back([&, user] {
      for (int call = 0; call < 25; ++call) {
        const torch::Tensor x = torch::full({5, 2}, double(user + call));
        const torch::Tensor g = grad([&](const torch::Tensor& at) { return f(at).stack().sum(); })(x);
        wrong += !torch::equal(g, 2 * 5 * x);
      }
    });
  }
  for (auto& user : users) user.join();
  EXPECT_EQ(wrong, 0);
}

TEST(PmapThreads, TwoBackwardPassesThroughOneCallAtOnce) {
  const auto f = pmap([](torch::Tensor x) { return lax::psum(x.square(), "i"); }, {.axis_name = "i"});
  for (int round = 0; round < 50; ++round) {
    const torch::Tensor x = torch::ones({4, 2}).requires_grad_();
    const auto out = f(x);
    // The first to end frees the graph, so that the other may find nothing, and says so.
    std::atomic<int> done{0};
    std::vector<std::thread> users;
    for (int user = 0; user < 2; ++user) {
      users.emplace_back([&, user] {
        try {
          out[user].sum().backward();
          ++done;
        } catch (const Error& error) {
          EXPECT_THAT(error.what(), HasSubstr("a second time"));
        }
      });
    }
    for (auto& user : users) user.join();
    EXPECT_GE(done, 1);
    EXPECT_TRUE(torch::equal(x.grad(), torch::full({4, 2}, 2.0F * static_cast<float>(done))));
  }
}

TEST(PmapThreads, InsideABodyAPmapIsRefusedWithAdvice) {
  const auto inner = pmap([](torch::Tensor x) { return x; }, {.axis_name = "inner"});
  const auto outer = pmap([&](torch::Tensor x) { return inner(x)[0]; }, {.axis_name = "outer"});
  EXPECT_THAT(
      [&] {
        outer(torch::ones({3, 2}));
      },
      ThrowsMessage<AxisError>(AllOf(HasSubstr("a pmap over axis \"inner\" was called inside the body of one over "
                                               "axis \"outer\""),
                                     HasSubstr("they do not nest"), HasSubstr("two named axes"),
                                     HasSubstr("pmap_threads_test.cpp:"))));
  // Also its backward, when a body differentiates what a pmap outside has returned.
  const torch::Tensor w = torch::ones({3, 2}).requires_grad_();
  const torch::Tensor loss = inner(w).stack().sum();
  EXPECT_THROW(pmap([&](torch::Tensor) { loss.backward(); })(torch::ones({2})), AxisError);
  EXPECT_TRUE(torch::equal(inner(torch::ones({2, 1})).stack(), torch::ones({2, 1})));
}

TEST(PmapThreads, APmapFromAThreadThatABodyStartedRunsWhenTheBodyHasLeft) {
  const auto inner = pmap([](torch::Tensor x) { return lax::psum(x, "i"); }, {.axis_name = "i"});
  std::future<float> later;
  const auto outer = pmap(
      [&](torch::Tensor x) {
        if (lax::axis_index("i") == 0)
          later = std::async(std::launch::async, [&] { return inner(torch::ones({4}))[3].item<float>(); });
        return lax::psum(x, "i");
      },
      {.axis_name = "i"});
  EXPECT_EQ(outer(torch::ones({4}))[0].item<float>(), 4);
  EXPECT_EQ(later.get(), 4);
}

using PmapThreadsDeathTest = testing::Test;

TEST(PmapThreadsDeathTest, ABodyThatWaitsForAThreadThatCallsAPmapIsWarnedAbout) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(
      {
        setenv("BRIGADE_DEADLINE", "0.1", 1);
        const auto inner = pmap([](torch::Tensor x) { return x; }, {.axis_name = "inner"});
        pmap([&](torch::Tensor) {
          auto call = std::async(std::launch::async, [&] { inner(torch::ones({1})); });
          if (call.wait_for(std::chrono::milliseconds(500)) == std::future_status::timeout) std::_Exit(7);
        })(torch::ones({1}));
      },
      testing::ExitedWithCode(7),
      AllOf(HasSubstr("the pmap over axis \"inner\" at pmap_threads_test.cpp:"),
            HasSubstr("has waited 0.1 s for cpu:0, which runs another pmap"), HasSubstr("neither can go on")));
}

}  // namespace pmap_threads_test
}  // namespace brigade
