// Bodies run on other threads as they would on the caller's: its modes reach them, and whatever a function may do, they may.
#include <ATen/Parallel.h>
#include <ATen/autocast_mode.h>
#include <c10/core/InferenceMode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cfenv>
#include <future>
#include <iomanip>
#include <iostream>
#include <limits>
#include <set>
#include <sstream>
#include <thread>

#include "brigade/brigade.h"
#include "support/nine_devices.h"

namespace brigade {
namespace pmap_state_test {

using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

torch::Tensor rows(std::int64_t n) { return torch::arange(n, torch::kFloat); }

// What `ask` says on each of the nine devices.
template <class Ask>
std::vector<bool> on_all(Ask ask) {
  const auto out = pmap([&](torch::Tensor) { return ask(); })(rows(9));
  return {out.begin(), out.end()};
}

const std::vector<bool> kEverywhere(9, true), kNowhere(9, false);

class Autocast {
 public:
  Autocast() {
    at::autocast::set_cpu_enabled(true);
    at::autocast::increment_nesting();
  }
  ~Autocast() {
    if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
    at::autocast::set_cpu_enabled(false);
  }
};

TEST(PmapState, GradModeOfTheCallerReachesTheDevices) {
  EXPECT_EQ(on_all([] { return at::GradMode::is_enabled(); }), kEverywhere);
  const at::NoGradGuard off;
  EXPECT_EQ(on_all([] { return at::GradMode::is_enabled(); }), kNowhere);
}

TEST(PmapState, InferenceModeOfTheCallerReachesTheDevices) {
  const auto made_here = [] { return torch::ones({1}).is_inference(); };
  EXPECT_EQ(on_all(made_here), kNowhere);
  const c10::InferenceMode on;
  EXPECT_EQ(on_all(made_here), kEverywhere);
}

TEST(PmapState, WritesIntoOrdinaryArgumentsAreNoticedInInferenceModeToo) {
  const torch::Tensor split = rows(9), whole = torch::zeros({2});
  const Sharded<torch::Tensor> own = replicate(whole);
  const c10::InferenceMode on;
  const auto f = pmap(
      [](torch::Tensor x, torch::Tensor y, torch::Tensor z, int number) {
        (number == 0 ? x : number == 1 ? y : z).add_(1);
        return x + y + z;
      },
      {.in_axes = {0, none, 0, 0}});
  for (int number = 0; number < 3; ++number) {
    EXPECT_THAT([&] { f(split, whole, own, number); },
                ThrowsMessage<InvalidArgument>(
                    AllOf(HasSubstr("wrote in place"), HasSubstr("argument [" + std::to_string(number) + "]"))));
  }
  EXPECT_TRUE(torch::equal(pmap([](torch::Tensor x) { return x + 1; })(rows(9)).stack(), rows(9) + 1));
}

TEST(PmapState, TheDefaultDtypeHoldsOnEveryDevice) {
  const auto is_double = [] { return torch::ones({1}).scalar_type() == torch::kDouble; };
  EXPECT_EQ(on_all(is_double), kNowhere);
  torch::set_default_dtype(caffe2::TypeMeta::Make<double>());
  EXPECT_EQ(on_all(is_double), kEverywhere);
  torch::set_default_dtype(caffe2::TypeMeta::Make<float>());
}

TEST(PmapState, AutocastOfTheCallerReachesTheDevices) {
  const torch::Tensor x = torch::ones({9, 2, 2});
  const auto product = pmap([](torch::Tensor t) { return torch::mm(t, t); });
  for (const auto& out : product(x)) EXPECT_EQ(out.scalar_type(), torch::kFloat);
  const Autocast on;
  for (const auto& out : product(x)) EXPECT_EQ(out.scalar_type(), torch::kBFloat16);
}

TEST(PmapState, AutocastDoesNotKeepCastsOfParametersThatAreUpdatedInPlace) {
  const Autocast on;
  const auto f = pmap([](torch::Tensor x) {
    torch::Tensor w = torch::ones({2, 2}).requires_grad_();
    const torch::Tensor before = torch::mm(x, w).detach();
    {
      const at::NoGradGuard off;
      w.mul_(3);
    }
    return torch::mm(x, w).detach() - before;
  });
  for (const auto& out : f(torch::ones({9, 2, 2}))) {
    EXPECT_TRUE(torch::equal(out, torch::full({2, 2}, 4, torch::kBFloat16)));
  }
  EXPECT_TRUE(at::autocast::is_autocast_cache_enabled());
}

TEST(PmapState, RoundingOfTheCallerReachesTheDevices) {
  // The smallest number above 1 is not reached by an addition of less than half the distance, unless it is rounded up.
  const auto rounds_up = [] {
    const volatile double one = 1, little = 1e-20;
    return one + little > 1;
  };
  EXPECT_EQ(on_all(rounds_up), kNowhere);
  std::fesetround(FE_UPWARD);
  const auto upwards = on_all(rounds_up);
  std::fesetround(FE_TONEAREST);
  EXPECT_EQ(upwards, kEverywhere);
  EXPECT_EQ(on_all(rounds_up), kNowhere);
}

TEST(PmapState, DenormalsAreFlushedOnAllDevicesOrOnNone) {
  const auto flushes = [] {
    const volatile float smallest = std::numeric_limits<float>::min();
    return smallest / 2 == 0;
  };
  EXPECT_EQ(on_all(flushes), kNowhere);
  if (!at::globalContext().setFlushDenormal(true)) GTEST_SKIP() << "this processor cannot";
  const auto flushed = on_all(flushes);
  at::globalContext().setFlushDenormal(false);
  EXPECT_EQ(flushed, kEverywhere);
}

TEST(PmapState, WhatABodyLeavesChangedIsPutBack) {
  pmap([](torch::Tensor) {
    at::GradMode::set_enabled(false);
    at::autocast::set_cpu_enabled(true);
    at::autocast::set_autocast_cache_enabled(true);
    std::fesetround(FE_DOWNWARD);
  })(rows(9));
  EXPECT_TRUE(at::GradMode::is_enabled());
  EXPECT_FALSE(at::autocast::is_cpu_enabled());
  EXPECT_EQ(std::fegetround(), FE_TONEAREST);
  EXPECT_EQ(on_all([] {
              return at::GradMode::is_enabled() && !at::autocast::is_cpu_enabled() && std::fegetround() == FE_TONEAREST;
            }),
            kEverywhere);
}

TEST(PmapState, NoGradGuardInsideABodyHoldsForItsScopeOnly) {
  const torch::Tensor x = torch::ones({9, 2}).requires_grad_();
  const auto f = pmap([](torch::Tensor t) {
    torch::Tensor detached;
    {
      const torch::NoGradGuard off;
      detached = t * 3;
    }
    return std::pair(detached, t * 3);
  });
  for (const auto& [without, with] : f(x)) {
    EXPECT_FALSE(without.requires_grad());
    EXPECT_TRUE(with.requires_grad());
  }
}

TEST(PmapState, InferenceTensorsThatBackwardNeedsAreRefusedByName) {
  torch::Tensor x;
  {
    const c10::InferenceMode on;
    x = torch::ones({3, 2});
  }
  const auto product = pmap([](torch::Tensor w, torch::Tensor t) { return w * t; });
  const torch::Tensor w = torch::ones({3, 2}).requires_grad_();
  EXPECT_THAT([&] { product(w, x); },
              ThrowsMessage<InvalidArgument>(AllOf(HasSubstr("backward needs an inference tensor, and [1] is one"),
                                                   HasSubstr("Clone"), HasSubstr("argument [1]"),
                                                   HasSubstr("pmap_state_test.cpp:"))));
  const auto inside = pmap([](torch::Tensor p, torch::Tensor t) {
    return grad([](const torch::Tensor& q, const torch::Tensor& at) { return (q * at).sum(); })(p, t);
  });
  EXPECT_THAT([&] { inside(w.detach(), x); }, ThrowsMessage<InvalidArgument>(HasSubstr("[1] is one")));
  // Without a graph they are as good as any.
  EXPECT_TRUE(torch::equal(product(w.detach(), x).stack(), torch::ones({3, 2})));
  const at::NoGradGuard off;
  EXPECT_TRUE(torch::equal(product(w, x).stack(), torch::ones({3, 2})));
}

TEST(PmapState, InferenceTensorsAreNotDifferentiated) {
  torch::Tensor x, variable;
  const auto square = [](const torch::Tensor& t) { return t.square().sum(); };
  {
    const c10::InferenceMode on;
    x = torch::ones({3, 2});
    variable = torch::ones({3, 2}).requires_grad_();
    EXPECT_THAT([&] { grad(square)(torch::ones({2})); },
                ThrowsMessage<InvalidArgument>(HasSubstr("gradients cannot be taken in InferenceMode")));
  }
  EXPECT_THAT([&] { grad(square)(x); }, ThrowsMessage<InvalidArgument>(HasSubstr("an inference tensor")));
  EXPECT_THAT([&] { pmap([](torch::Tensor t) { return t + 1; })(variable); },
              ThrowsMessage<InvalidArgument>(AllOf(HasSubstr("an inference tensor"), HasSubstr("argument [0]"))));
}

TEST(PmapState, BodiesMayUseStreamsAndAllocate) {
  const auto f = pmap(
      [](torch::Tensor x) {
        std::ostringstream out;
        out << std::setprecision(3) << "device " << lax::axis_index("i") << ": " << x.item<float>() / 3;
        std::vector<std::unique_ptr<std::string>> many;
        for (int i = 0; i < 1000; ++i) many.push_back(std::make_unique<std::string>(100, 'x'));
        return out.str() + ", " + std::to_string(many.size());
      },
      {.axis_name = "i"});
  const auto out = f(rows(9));
  EXPECT_EQ(out[4], "device 4: 1.33, 1000");
  EXPECT_EQ(out[8], "device 8: 2.67, 1000");
}

TEST(PmapState, BodiesMayWriteIntoOneStream) {
  testing::internal::CaptureStdout();
  pmap(
      [](torch::Tensor) {
        const std::string line = std::string(20, static_cast<char>('a' + lax::axis_index("i"))) + '\n';
        for (int i = 0; i < 50; ++i) std::cout << line;
      },
      {.axis_name = "i"})(rows(9));
  std::istringstream lines(testing::internal::GetCapturedStdout());
  std::array<int, 9> count{};
  for (std::string line; std::getline(lines, line);) {
    ASSERT_EQ(line, std::string(20, line[0]));
    ++count.at(static_cast<std::size_t>(line[0] - 'a'));
  }
  for (const int own : count) EXPECT_EQ(own, 50);
}

struct Counted {
  Counted() { ++made; }
  static inline std::atomic<int> made{0};
  std::atomic<int> uses{0};
};

TEST(PmapState, StaticLocalsAreMadeOnceForAllDevices) {
  const auto f = pmap([](torch::Tensor) {
    static Counted shared;
    return ++shared.uses;
  });
  f(rows(9));
  const auto second = f(rows(9));
  EXPECT_EQ(Counted::made, 1);
  std::set<int> seen(second.begin(), second.end());
  EXPECT_EQ(seen, (std::set{10, 11, 12, 13, 14, 15, 16, 17, 18}));
}

TEST(PmapState, ThreadLocalsBelongToTheDeviceAndStayFromCallToCall) {
  const auto f = pmap([](torch::Tensor) {
    thread_local int calls = 0;
    return ++calls;
  });
  for (int call = 1; call <= 3; ++call) {
    const auto out = f(rows(9));
    EXPECT_EQ(std::vector<int>(out.begin(), out.end()), std::vector<int>(9, call));
  }
  // Nobody else's writes are seen, though all have written by then.
  const auto g = pmap(
      [](torch::Tensor x) {
        thread_local std::int64_t own = -1;
        own = lax::axis_index("i");
        lax::psum(x, "i");
        return own;
      },
      {.axis_name = "i"});
  const auto out = g(rows(9));
  for (std::int64_t i = 0; i < 9; ++i) EXPECT_EQ(out[i], i);
}

TEST(PmapState, BodiesMayUseThreadsOfTheirOwnAndOfLibraries) {
  const auto f = pmap([](torch::Tensor x) {
    std::vector<double> parts(4);
    std::vector<std::thread> threads;
    for (std::size_t part = 0; part < parts.size(); ++part) {
      threads.emplace_back([&, part] { parts[part] = torch::full({10}, double(part)).sum().item<double>(); });
    }
    for (auto& thread : threads) thread.join();
    auto later = std::async(std::launch::async, [&] { return x.item<float>() + 1; });
    std::atomic<std::int64_t> sum{0};
    at::parallel_for(0, 1000, 10, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) sum += i;
    });
    return parts[0] + parts[1] + parts[2] + parts[3] + later.get() + double(sum);
  });
  const auto out = f(rows(9));
  for (int i = 0; i < 9; ++i) EXPECT_EQ(out[i], 60 + i + 1 + 499500);
}

}  // namespace pmap_state_test
}  // namespace brigade
