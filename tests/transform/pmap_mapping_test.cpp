// How arguments reach bodies and results come back.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <thread>

#include "brigade/brigade.h"
#include "support/nine_devices.h"
#include "support/threads.h"

namespace brigade {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

torch::Tensor rows(std::int64_t n, std::int64_t m) { return torch::arange(n * m, torch::kFloat).reshape({n, m}); }

TEST(Pmap, SplitsTheLeadingAxisAndStacksItAgain) {
  const torch::Tensor x = rows(4, 3);
  const auto out = pmap([](torch::Tensor t) { return 2 * t; })(x);
  ASSERT_EQ(out.size(), 4);
  EXPECT_TRUE(torch::equal(out[2], 2 * x[2]));
  EXPECT_TRUE(torch::equal(out.stack(), 2 * x));
}

TEST(Pmap, MapsAnyAxisOfEachArgumentAlsoNegativeOnesAndNone) {
  const torch::Tensor a = torch::rand({2, 4, 3}), b = torch::rand({3, 2, 4}), c = torch::rand({2, 3});
  const auto f =
      pmap([](torch::Tensor x, torch::Tensor y, torch::Tensor z) { return x + y.t() + z; }, {.in_axes = {1, -1, none}});
  const auto out = f(a, b, c);
  ASSERT_EQ(out.size(), 4);
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(torch::equal(out[i], a.select(1, i) + b.select(2, i).t() + c));
}

TEST(Pmap, TakesTreesWithATreePrefixOfAxes) {
  struct Batch {
    torch::Tensor x;
    std::vector<torch::Tensor> extra;
  };
  const Batch batch{rows(3, 2), {rows(2, 3), rows(2, 3) + 10}};
  const auto out =
      pmap([](Batch b) { return b.x.sum() + b.extra[0].sum() + b.extra[1].sum(); }, {.in_axes = {{0, 1}}})(batch);
  ASSERT_EQ(out.size(), 3);
  for (int i = 0; i < 3; ++i) {
    const float expected =
        (batch.x[i].sum() + batch.extra[0].select(1, i).sum() + batch.extra[1].select(1, i).sum()).item<float>();
    EXPECT_EQ(out[i].item<float>(), expected);
  }
}

TEST(Pmap, PassesWhatIsNoTensorToEveryDevice) {
  enum class Mode { kAdd, kMultiply };
  struct Config {
    Mode mode;
    double by;
    std::string note;
  };
  const auto f = pmap([](torch::Tensor x, Config c, int times) {
    return std::pair(c.mode == Mode::kMultiply ? x * c.by * times : x, c.note);
  });
  const auto out = f(rows(3, 1), Config{Mode::kMultiply, 0.5, "noted"}, 4);
  EXPECT_EQ(out[2].first.item<float>(), 4);
  EXPECT_EQ(out[1].second, "noted");
}

TEST(Pmap, SeesAScalarWholeOnEveryDevice) {
  const auto out = pmap([](torch::Tensor x, torch::Tensor y) { return x + 0 * y; }, {.in_axes = {none, 0}})(
      torch::tensor(3), torch::arange(4));
  EXPECT_TRUE(torch::equal(out.stack(), torch::full({4}, 3)));
}

TEST(Pmap, FeedsAShardedBackWithoutACopy) {
  const auto twice = pmap([](torch::Tensor t) { return t.mul(2); });
  const auto same = pmap([](torch::Tensor t) { return t; });
  const auto once = twice(rows(4, 2));
  EXPECT_TRUE(torch::equal(twice(once).stack(), 4 * rows(4, 2)));
  const auto fed = same(once);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(fed[i].data_ptr(), once[i].data_ptr());
}

TEST(Pmap, UsesTheFirstDevicesForFewerRowsAndTheNamedOnesInTheirOrder) {
  const auto who = [](torch::Tensor) {
    return static_cast<std::int64_t>(std::hash<std::thread::id>()(std::this_thread::get_id()) >> 1);
  };
  // Each device alone tells which thread is its own.
  std::vector<std::int64_t> own;
  for (const Device& device : devices()) own.push_back(pmap(who, {.devices = {{device}}})(rows(1, 1))[0]);
  const auto first_two = pmap(who)(rows(2, 1));
  EXPECT_EQ(first_two.values(), (std::vector{own[0], own[1]}));
  const auto chosen = pmap(who, {.devices = {{devices()[3], devices()[0], devices()[2]}}})(rows(3, 1));
  EXPECT_EQ(chosen.values(), (std::vector{own[3], own[0], own[2]}));
}

TEST(Pmap, RunsInReverseOnReversedDevices) {
  const auto d = [](int i) { return devices()[static_cast<std::size_t>(i)]; };
  const auto who = [](torch::Tensor x) {
    return std::pair(x + lax::axis_index("i"), std::hash<std::thread::id>()(std::this_thread::get_id()));
  };
  const auto forwards = pmap(who, {.axis_name = "i"})(rows(3, 2));
  const auto backwards = pmap(who, {.axis_name = "i", .devices = {{d(2), d(1), d(0)}}})(rows(3, 2));
  for (int i = 0; i < 3; ++i) {
    // Positions are the same, and so are their values; the threads are those of the other end.
    EXPECT_TRUE(torch::equal(backwards[i].first, rows(3, 2)[i] + i));
    EXPECT_EQ(backwards[i].second, forwards[2 - i].second);
  }
  // A result goes on as it is, wherever it was made.
  const auto values = std::get<0>(unzip(backwards));
  const auto fed = pmap([](torch::Tensor t) { return t; })(values);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(fed[i].data_ptr(), values[i].data_ptr());
}

TEST(Pmap, TakesItsSizeFromAxisSizeWhenNothingIsMapped) {
  const auto out = pmap([](int seven) { return seven + lax::axis_index("i"); }, {.axis_name = "i", .axis_size = 5})(7);
  ASSERT_EQ(out.size(), 5);
  EXPECT_EQ(out[4], 11);
}

TEST(Pmap, RunsBodiesThatReturnNothing) {
  std::atomic<int> calls{0};
  pmap([&](torch::Tensor) { ++calls; })(rows(6, 1));
  EXPECT_EQ(calls, 6);
}

TEST(Pmap, ConsumesWhatIsMovedInOnlyWhenTheCallSucceeds) {
  const auto f = pmap([](torch::Tensor t, bool fail) {
    if (fail) throw std::runtime_error("no");
    return t + 1;
  });
  Sharded<torch::Tensor> x = replicate(torch::zeros({2}));
  EXPECT_THROW(f(std::move(x), true), std::runtime_error);
  EXPECT_EQ(x[0].sum().item<float>(), 0);  // NOLINT(bugprone-use-after-move): kept, as the call failed
  Sharded<torch::Tensor> y = f(std::move(x), false);
  EXPECT_EQ(y[8].sum().item<float>(), 2);
  EXPECT_THAT([&] { x[0]; }, ThrowsMessage<InvalidArgument>(HasSubstr("pmap_mapping_test.cpp")));
  y = f(std::move(y), false);  // the usual way to write it
  EXPECT_EQ(y[0].sum().item<float>(), 4);
}

TEST(Pmap, TakesWhatABodyReturnsByReference) {
  EXPECT_TRUE(torch::equal(pmap([](const torch::Tensor& x) -> const torch::Tensor& { return x; })(rows(3, 2)).stack(),
                           rows(3, 2)));
  EXPECT_TRUE(torch::equal(pmap(std::identity{})(rows(3, 2)).stack(), rows(3, 2)));
}

TEST(Pmap, TakesStringLiteralsAndVectorsOfBool) {
  const auto f = pmap([](torch::Tensor x, std::string text, std::vector<bool> flags) {
    return flags[1] ? x + double(text.size()) : x;
  });
  EXPECT_EQ(f(rows(2, 1), "four", std::vector<bool>{false, true})[0].item<float>(), 4);
}

TEST(Pmap, TakesItsSizeFromAxisSizeBesideMappedArguments) {
  const auto f = pmap([](torch::Tensor x, std::string name,
                         std::optional<torch::Tensor> extra) { return std::pair(extra ? x + *extra : x, name); },
                      {.in_axes = {0, 0, none}, .axis_size = 3});
  const auto out = f(rows(3, 1), std::string("n"), std::optional(torch::ones({1})));
  EXPECT_TRUE(torch::equal(out[2].first, rows(3, 1)[2] + 1));
  EXPECT_EQ(out[2].second, "n");
  EXPECT_EQ(f(rows(3, 1), std::string("n"), std::optional<torch::Tensor>()).size(), 3);
}

TEST(Pmap, CapturesConstants) {
  const torch::Tensor constant = torch::full({3}, 5.0F);
  EXPECT_TRUE(torch::equal(pmap([&](torch::Tensor x) { return x + constant; })(rows(4, 3)).stack(), rows(4, 3) + 5));
}

TEST(Pmap, TakesTreesOfFiveHundredLeaves) {
  std::vector<torch::Tensor> leaves;
  for (int i = 0; i < 500; ++i) leaves.push_back(torch::full({4, 2}, float(i)));
  const auto out = pmap([](std::vector<torch::Tensor> v) { return lax::psum(v, "i"); }, {.axis_name = "i"})(leaves);
  for (int i = 0; i < 500; ++i) EXPECT_EQ(out[3][i][1].item<float>(), 4.0F * i);
}

TEST(Pmap, MakesItsThreadsOnceAndKeepsThem) {
  const auto f = pmap([](torch::Tensor x) { return lax::psum(x, "i"); }, {.axis_name = "i"});
  f(rows(9, 4));
  const int before = threads_of_this_process();
  for (int i = 0; i < 500; ++i)
    pmap([](torch::Tensor x) { return lax::psum(x, "i"); }, {.axis_name = "i"})(rows(1 + i % 9, 4));
  EXPECT_EQ(threads_of_this_process(), before);
}

}  // namespace
}  // namespace brigade
