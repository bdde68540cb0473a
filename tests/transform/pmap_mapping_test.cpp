// How arguments reach bodies and results come back.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cmath>
#include <functional>
#include <thread>

#include "brigade/brigade.h"
#include "support/nine_devices.h"
#include "support/threads.h"

namespace brigade {

// What no tree can look into.
struct Schedule {
  std::function<double(int step)> rate;
};
template <>
inline constexpr bool tree::is_static<Schedule> = true;

namespace pmap_mapping_test {

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

TEST(Pmap, SplitsAndStacksEachArgumentAndResultAlongItsOwnAxis) {
  const torch::Tensor x = torch::arange(24.0).reshape({2, 3, 4}), y = torch::arange(12.0).reshape({2, 2, 3}) + 50;
  const auto f = pmap([](torch::Tensor a, torch::Tensor b) { return std::pair(a.t() + 1, lax::psum(b, "i")); },
                      {.axis_name = "i", .in_axes = {1, 2}, .out_axes = {2, none}});
  const auto [each, sum] = f(x, y).stack();
  std::vector<torch::Tensor> slices;
  torch::Tensor total = torch::zeros({2, 2});
  for (std::int64_t i = 0; i < 3; ++i) {
    slices.push_back(x.select(1, i).t() + 1);
    total = total + y.select(2, i);
  }
  EXPECT_TRUE(torch::equal(each, torch::stack(slices, 2)));
  EXPECT_TRUE(torch::equal(sum, total));
}

TEST(Pmap, StacksAlongATreePrefixOfOutAxes) {
  struct Out {
    torch::Tensor each, same;
  };
  const auto f = pmap(
      [](torch::Tensor t) {
        return std::tuple(Out{t, lax::psum(t, "i")}, std::vector{t + 1, t + 2},
                          std::map<std::string, int>{{"seven", 7}});
      },
      {.axis_name = "i", .out_axes = {{1, none}, -1, none}});
  const torch::Tensor x = rows(3, 2);
  const auto [out, list, numbers] = f(x).stack();
  EXPECT_TRUE(torch::equal(out.each, x.t()));
  EXPECT_TRUE(torch::equal(out.same, x.sum(0)));
  EXPECT_TRUE(torch::equal(list[0], x.t() + 1));
  EXPECT_TRUE(torch::equal(list[1], x.t() + 2));
  EXPECT_EQ(numbers.at("seven"), 7);
}

TEST(Pmap, CarriesAlongWhatTheUserSaysIsStatic) {
  const Schedule halving{[](int step) { return std::ldexp(1.0, -step); }};
  const auto f = pmap([](torch::Tensor x, std::pair<int, Schedule> at) {
    return std::pair(x * at.second.rate(at.first), std::move(at.second));
  });
  const auto out = f(rows(3, 1), std::pair(2, halving));
  EXPECT_EQ(out[2].first.item<float>(), 0.5F);
  EXPECT_EQ(out[1].second.rate(1), 0.5);
  EXPECT_EQ(out.stack().first.sizes(), torch::IntArrayRef({3, 1}));
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

TEST(Pmap, RunsAMeshOnTheNamedDevicesInTheirOrder) {
  const auto d = [](int i) { return devices()[static_cast<std::size_t>(i)]; };
  const auto who = [] { return std::hash<std::thread::id>()(std::this_thread::get_id()); };
  const auto own = pmap([&](torch::Tensor) { return who(); })(rows(4, 1));
  const auto f = pmap(
      [&](torch::Tensor x) {
        return std::tuple(lax::axis_index("host"), lax::axis_index("device"), lax::psum(x, "device"), who());
      },
      {.mesh = Mesh{{"host", 2}, {"device", 2}}, .devices = {{d(3), d(1), d(0), d(2)}}});
  const auto out = f(torch::tensor({1, 20, 300, 4000}));
  const std::array<int, 4> order = {3, 1, 0, 2};
  for (int position = 0; position < 4; ++position) {
    const auto& [host, device, sum, thread] = out[position];
    EXPECT_EQ(host, position / 2);
    EXPECT_EQ(device, position % 2);
    EXPECT_EQ(sum.item<int>(), position < 2 ? 21 : 4300);
    EXPECT_EQ(thread, own[order[static_cast<std::size_t>(position)]]);
  }
}

TEST(Pmap, GivesEveryDeviceNormalsOfItsOwnFromOneKeySplit) {
  const random::Key key = random::key(7);
  const auto draws =
      pmap([](random::Key own) { return random::normal(own, {4}); })(Sharded<random::Key>(random::split(key, 9)));
  for (int i = 0; i < 9; ++i) {
    EXPECT_TRUE(torch::equal(draws[i], random::normal(random::split_at(key, static_cast<std::uint64_t>(i)), {4})));
    for (int j = 0; j < i; ++j) EXPECT_FALSE((draws[i] == draws[j]).any().item<bool>());
  }
}

TEST(Pmap, TakesAndReturnsBools) {
  const auto is_even = pmap([](torch::Tensor) { return lax::axis_index("i") % 2 == 0; }, {.axis_name = "i"});
  const Sharded<bool> even = is_even(rows(4, 1));
  const auto odd = pmap([](bool value) { return !value; })(even);
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(even[i], i % 2 == 0);
    EXPECT_EQ(odd[i], i % 2 == 1);
  }
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

}  // namespace pmap_mapping_test
}  // namespace brigade
