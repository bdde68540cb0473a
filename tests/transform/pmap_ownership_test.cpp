// Which arguments a body may write into, what std::move gives away, and what is left when a call fails.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "brigade/brigade.h"
#include "support/nine_devices.h"

namespace brigade {
namespace pmap_ownership_test {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::ThrowsMessage;

struct Params {
  torch::Tensor w, b;
};

Sharded<Params> params_of(std::int64_t n) {
  std::vector<Params> all;
  for (std::int64_t i = 0; i < n; ++i) all.push_back({torch::full({3}, double(i)), torch::zeros({2})});
  return Sharded<Params>(std::move(all));
}

std::vector<void*> pointers_to_w(const Sharded<Params>& all) {
  std::vector<void*> pointers;
  for (const Params& p : all) pointers.push_back(p.w.data_ptr());
  return pointers;
}

const auto kAddOneInPlace = [](torch::Tensor x) { return x.add_(1); };

TEST(Ownership, WritingIntoAnArgumentThatTheCallerKeepsIsAnErrorThatNamesIt) {
  const auto f = pmap(
      [](Params p, torch::Tensor) {
        if (lax::axis_index("devices") == 1) p.b.zero_();
        return p;
      },
      {.axis_name = "devices"});
  const Sharded<Params> kept = params_of(3);
  EXPECT_THAT([&] { f(kept, torch::ones({3})); },
              ThrowsMessage<InvalidArgument>(
                  AllOf(HasSubstr("wrote in place into a tensor of shape [2], which is the caller's"),
                        HasSubstr("Clone it first, or pass the argument with std::move"), HasSubstr("argument [0].b"),
                        HasSubstr("axis \"devices\""), HasSubstr("device 1"), HasSubstr("pmap_ownership_test.cpp:"))));
  EXPECT_EQ(last_failure()->failures.size(), 1U);
}

TEST(Ownership, WritingIntoASliceOrAViewOfItIsNoticed) {
  const torch::Tensor x = torch::zeros({4, 2, 3});
  const auto refuses = [&](auto body) {
    EXPECT_THAT([&] { pmap(body)(x); }, ThrowsMessage<InvalidArgument>(
                                            AllOf(HasSubstr("a tensor of shape [2, 3]"), HasSubstr("argument [0]"))));
  };
  refuses(kAddOneInPlace);
  refuses([](torch::Tensor t) { return t[1].t().mul_(2); });
  refuses([](torch::Tensor t) { return t.detach().fill_(7); });
  refuses([](torch::Tensor t) {
    const at::NoGradGuard off;
    torch::Tensor view = t.view(-1);
    t = torch::Tensor();
    return view.copy_(torch::ones({6}));
  });
  refuses([](const torch::Tensor& t) { return torch::add_out(const_cast<torch::Tensor&>(t), t, t); });
}

TEST(Ownership, WritingIntoWhatAllDevicesShareIsAnErrorAlsoWhenMoved) {
  const auto f = pmap([](torch::Tensor, torch::Tensor whole) { return whole.add_(1); }, {.in_axes = {0, none}});
  const auto refuses = [&](auto call) {
    EXPECT_THAT(call, ThrowsMessage<InvalidArgument>(AllOf(HasSubstr("which all devices share, as in_axes is none"),
                                                           HasSubstr("replicate()"), HasSubstr("argument [1]"))));
  };
  const torch::Tensor x = torch::ones({2, 1}), whole = torch::ones({5});
  refuses([&] { f(x, whole); });
  refuses([&] { f(x, torch::ones({5})); });
}

TEST(Ownership, WhatABodyMakesItMayChange) {
  const auto f = pmap([](torch::Tensor x) {
    torch::Tensor y = x.clone();
    y.add_(1);
    torch::Tensor z = x * 2;
    z[0] = 5;
    return y + z;
  });
  EXPECT_TRUE(torch::equal(f(torch::ones({2, 2})).stack(), torch::tensor({{7.0F, 4.0F}, {7.0F, 4.0F}})));
}

TEST(Ownership, OthersMayWriteIntoTheSameMemoryMeanwhile) {
  // Two halves of one buffer: one is read by bodies, into the other the next batch is loaded.
  const torch::Tensor buffer = torch::zeros({2, 4, 3});
  torch::Tensor next = buffer[1];
  const auto f = pmap(
      [&](torch::Tensor x) {
        if (lax::axis_index("i") == 1) torch::Tensor(next).fill_(7);
        lax::psum(x, "i");
        return x + 1;
      },
      {.axis_name = "i"});
  EXPECT_TRUE(torch::equal(f(buffer[0]).stack(), torch::ones({4, 3})));
  EXPECT_TRUE(torch::equal(next, torch::full({4, 3}, 7.0F)));
}

TEST(Ownership, AVariableOfARecordedCallIsTheCallersToo) {
  const torch::Tensor w = torch::ones({3, 2}).requires_grad_();
  const auto f = pmap([](torch::Tensor t, torch::Tensor x) {
    const torch::Tensor y = t * x;
    const at::NoGradGuard off;
    x.add_(1);
    return y;
  });
  EXPECT_THAT(
      [&] {
        f(w, torch::ones({3, 2}).clone().narrow(1, 0, 2));
      },
      ThrowsMessage<InvalidArgument>(HasSubstr("argument [1]")));
}

TEST(Ownership, AutogradStillNoticesWhatTheCallerChangesBeforeBackward) {
  torch::Tensor w = torch::ones({3, 2}).requires_grad_(), x = torch::ones({3, 2});
  const auto out = pmap([](torch::Tensor t, torch::Tensor u) { return t * u; })(w, x);
  x.add_(1);
  EXPECT_THAT([&] { out.stack().sum().backward(); },
              ThrowsMessage<c10::Error>(HasSubstr("modified by an inplace operation")));
}

TEST(Ownership, AMovedShardedMayBeUpdatedInPlace) {
  Sharded<Params> all = params_of(4);
  const std::vector<void*> before = pointers_to_w(all);
  const auto step = pmap([](Params p) {
    p.w.add_(1);
    p.b.sub_(2);
    return p;
  });
  for (int i = 0; i < 3; ++i) {
    all = step(std::move(all));
    EXPECT_EQ(pointers_to_w(all), before) << "step " << i;
  }
  for (std::int64_t i = 0; i < 4; ++i) {
    EXPECT_TRUE(torch::equal(all[i].w, torch::full({3}, double(i) + 3)));
    EXPECT_TRUE(torch::equal(all[i].b, torch::full({2}, -6.0)));
  }
}

TEST(Ownership, ABodyHasTheOnlyHandleToWhatWasMoved) {
  Sharded<torch::Tensor> x({torch::ones({3}), torch::ones({3})});
  const std::vector<void*> before = {x[0].data_ptr(), x[1].data_ptr()};
  std::array<bool, 2> alone{};
  const auto f = pmap(
      [&](torch::Tensor t) {
        alone[static_cast<std::size_t>(lax::axis_index("i"))] = t.use_count() == 1 && t.storage().use_count() == 1;
        return lax::psum(std::move(t), "i");
      },
      {.axis_name = "i"});
  const auto sums = f(std::move(x));
  EXPECT_TRUE(alone[0] && alone[1]);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(sums[i].data_ptr(), before[static_cast<std::size_t>(i)]);
    EXPECT_TRUE(torch::equal(sums[i], torch::full({3}, 2.0)));
  }
  Sharded<torch::Tensor> kept({torch::ones({3}), torch::ones({3})});
  const auto other = f(kept);
  EXPECT_FALSE(alone[0] || alone[1]);
  EXPECT_NE(other[0].data_ptr(), kept[0].data_ptr());
  EXPECT_TRUE(torch::equal(kept[0], torch::ones({3})));
}

TEST(Ownership, MemoryGrowsAndShrinksAsUsualInsideADonatedTensor) {
  Sharded<torch::Tensor> x({torch::ones({3}), torch::ones({3})});
  const auto f = pmap([](torch::Tensor t) { return t.resize_({100}).fill_(2); });
  x = f(std::move(x));
  EXPECT_TRUE(torch::equal(x[1], torch::full({100}, 2.0)));
  x = f(std::move(x));
  EXPECT_TRUE(torch::equal(x[0], torch::full({100}, 2.0)));
}

TEST(Ownership, MovedButHeldElsewhereIsNotTheBodysAlone) {
  const auto refuses = [](auto call) {
    EXPECT_THAT(call, ThrowsMessage<InvalidArgument>(
                          AllOf(HasSubstr("is not the only way to its memory"), HasSubstr("let go of the other"))));
  };
  const auto in_place = pmap(kAddOneInPlace);
  Sharded<torch::Tensor> x({torch::zeros({3}), torch::zeros({3})});
  const torch::Tensor handle = x[0];
  refuses([&] { in_place(std::move(x)); });
  Sharded<torch::Tensor> y({torch::zeros({3}), torch::zeros({3})});
  const torch::Tensor view = y[1].narrow(0, 0, 1);
  refuses([&] { in_place(std::move(y)); });
  const torch::Tensor same = torch::zeros({3});
  refuses([&] { in_place(Sharded<torch::Tensor>({same, same})); });
  Sharded<torch::Tensor> z({torch::zeros({3}), torch::zeros({3})});
  Sharded<torch::Tensor> copy = z;
  refuses([&] { in_place(std::move(z)); });
  float numbers[] = {1, 2};
  Sharded<torch::Tensor> foreign({torch::from_blob(numbers, {1}), torch::from_blob(numbers + 1, {1})});
  refuses([&] { in_place(std::move(foreign)); });
  Sharded<torch::Tensor> variables({torch::zeros({3}).requires_grad_(), torch::zeros({3}).requires_grad_()});
  const at::NoGradGuard off;
  refuses([&] { in_place(std::move(variables)); });
}

TEST(Ownership, OneValueAsTwoArgumentsIsNotTheBodysAlone) {
  const auto f = pmap([](torch::Tensor a, torch::Tensor b) { return a.add_(1) + b; });
  Sharded<torch::Tensor> x({torch::zeros({3}), torch::zeros({3})});
  EXPECT_THAT([&] { f(std::move(x), x); },  // NOLINT(bugprone-use-after-move): both refer to it
              ThrowsMessage<InvalidArgument>(HasSubstr("is not the only way to its memory")));
}

TEST(Ownership, SlicesOfAMovedTensorMayBeWrittenInto) {
  torch::Tensor x = torch::zeros({4, 3});
  const auto f = pmap(kAddOneInPlace);
  const void* before = x.data_ptr();
  const auto out = f(std::move(x));
  EXPECT_FALSE(x.defined());  // NOLINT(bugprone-use-after-move): that is what is tested
  EXPECT_EQ(out[0].data_ptr(), before);
  EXPECT_TRUE(torch::equal(out.stack(), torch::ones({4, 3})));
  EXPECT_TRUE(torch::equal(f(torch::full({2, 3}, 4.0F)).stack(), torch::full({2, 3}, 5.0F)));
  EXPECT_TRUE(
      torch::equal(pmap(kAddOneInPlace, {.in_axes = -1})(torch::zeros({3, 4}).clone()).stack(), torch::ones({4, 3})));
}

TEST(Ownership, SlicesThatShareMemoryMayNotBeWrittenInto) {
  const auto f = pmap(kAddOneInPlace);
  EXPECT_THROW(f(torch::zeros({1, 3}).expand({4, 3})), InvalidArgument);
  torch::Tensor row = torch::zeros({3});
  torch::Tensor overlapping = row.as_strided({2, 2}, {1, 1});
  row = torch::Tensor();
  EXPECT_THROW(f(std::move(overlapping)), InvalidArgument);
}

TEST(Ownership, ATreeOfTensorsIsTakenLeafByLeaf) {
  Params p{torch::zeros({2, 3}), torch::zeros({2, 1})};
  const torch::Tensor kept = p.b;
  const auto f = pmap([](Params q) { return q.w.add_(1) + q.b; });
  EXPECT_TRUE(torch::equal(f(std::move(p)).stack(), torch::ones({2, 3})));
  EXPECT_FALSE(p.w.defined());  // NOLINT(bugprone-use-after-move): that is what is tested
  EXPECT_FALSE(p.b.defined());  // NOLINT(bugprone-use-after-move)
  EXPECT_THAT([&] { f(std::move(p)); },
              ThrowsMessage<TreeError>(AllOf(HasSubstr("or it was moved from"), HasSubstr("argument [0].w"))));
}

TEST(Ownership, ACallThatThrowsConsumesNothing) {
  const auto f = pmap(
      [](Params p, torch::Tensor x, bool fail) {
        const torch::Tensor sum = lax::psum(p.w + x, "i");
        if (fail && lax::axis_index("i") == 1) throw std::runtime_error("no");
        return Params{sum, p.b};
      },
      {.axis_name = "i"});
  Sharded<Params> all = params_of(2);
  torch::Tensor x = torch::ones({2, 3});
  const std::vector<void*> before = pointers_to_w(all);
  EXPECT_THROW(f(std::move(all), std::move(x), true), std::runtime_error);
  // NOLINTBEGIN(bugprone-use-after-move): that is what is tested
  EXPECT_EQ(pointers_to_w(all), before);
  EXPECT_TRUE(torch::equal(all[1].w, torch::ones({3})));
  EXPECT_TRUE(torch::equal(x, torch::ones({2, 3})));
  // Errors about the arguments, and about the results.
  EXPECT_THROW(f(std::move(all), torch::ones({3, 3}), false), ShapeError);
  const auto uneven =
      pmap([](Params p) { return std::vector<torch::Tensor>(static_cast<std::size_t>(1 + lax::axis_index("i")), p.w); },
           {.axis_name = "i"});
  EXPECT_THROW(uneven(std::move(all)), TreeError);
  EXPECT_EQ(pointers_to_w(all), before);
  const auto out = f(std::move(all), std::move(x), false);
  EXPECT_TRUE(torch::equal(out[0].w, torch::full({3}, 3.0)));
  EXPECT_THAT([&] { all[0]; },
              ThrowsMessage<InvalidArgument>(
                  AllOf(HasSubstr("was given away"), HasSubstr("argument 0 of the pmap at pmap_ownership_test.cpp:"))));
  // NOLINTEND(bugprone-use-after-move)
}

TEST(Ownership, WhatAFailedCallHadWrittenIntoIsLostAndSaysSo) {
  const auto f = pmap(
      [](Params p, torch::Tensor x) {
        if (lax::axis_index("i") == 0) p.w.add_(1);
        lax::psum(x, "i");
        if (lax::axis_index("i") == 1) throw std::runtime_error("no");
        return p;
      },
      {.axis_name = "i"});
  Sharded<Params> all = params_of(2);
  torch::Tensor x = torch::ones({2, 3});
  EXPECT_THROW(f(std::move(all), std::move(x)), std::runtime_error);
  // NOLINTBEGIN(bugprone-use-after-move): that is what is tested
  EXPECT_THAT([&] { all[1]; },
              ThrowsMessage<InvalidArgument>(AllOf(HasSubstr("this value is lost"),
                                                   HasSubstr("had written into it when the call failed"),
                                                   HasSubstr("argument 0 of the pmap at pmap_ownership_test.cpp:"))));
  EXPECT_TRUE(torch::equal(x, torch::ones({2, 3})));
  // NOLINTEND(bugprone-use-after-move)
}

// After one step in place, so that the caller's versions are not 0.
Sharded<Params> updated_params(std::int64_t n) {
  return pmap([](Params p) {
    p.w.add_(1);
    p.b.add_(1);
    return p;
  })(params_of(n));
}

TEST(Ownership, WhatAFailedCallThatRecordsHadWrittenIntoIsLostToo) {
  const auto loses = [](auto write) {
    const auto f = pmap(
        [=](torch::Tensor w, torch::Tensor x) {
          write(std::move(w));
          if (lax::axis_index("i") == 1) throw std::runtime_error("no");
          return x * 2;
        },
        {.axis_name = "i"});
    Sharded<torch::Tensor> w = pmap([](torch::Tensor t) { return t.clone().add_(1); })(torch::zeros({2, 3}));
    EXPECT_THROW(f(std::move(w), torch::ones({2, 3}).requires_grad_()), std::runtime_error);
    EXPECT_THAT([&] { w[0]; },  // NOLINT(bugprone-use-after-move): that is what is tested
                ThrowsMessage<InvalidArgument>(HasSubstr("this value is lost")));
  };
  loses([](torch::Tensor w) { w.add_(1); });
  loses([](torch::Tensor w) { lax::psum(std::move(w), "i"); });
}

TEST(Ownership, AFailedCallThatRecordsAndOnlyReadsConsumesNothing) {
  const auto f = pmap(
      [](Params p, torch::Tensor x) {
        if (lax::axis_index("i") == 1) throw std::runtime_error("no");
        return x * p.w;
      },
      {.axis_name = "i"});
  Sharded<Params> all = updated_params(2);
  EXPECT_THROW(f(std::move(all), torch::ones({2, 3}).requires_grad_()), std::runtime_error);
  EXPECT_TRUE(
      torch::equal(all[1].w, torch::full({3}, 2.0)));  // NOLINT(bugprone-use-after-move): that is what is tested
}

TEST(Ownership, WhatIsDonatedToACallThatRecordsMayBeUpdatedAndDifferentiatedThrough) {
  const auto f = pmap([](Params p, torch::Tensor x) {
    p.w.add_(1);
    return std::pair((p.w * x).square(), p.w);
  });
  Sharded<Params> all = updated_params(2);
  const std::vector<void*> before = pointers_to_w(all);
  const torch::Tensor x = torch::tensor({{1.0F, 2.0F, 3.0F}, {4.0F, 5.0F, 6.0F}}).requires_grad_();
  const auto out = f(std::move(all), x);
  // w is 0 + 2 on device 0 and 1 + 2 on device 1.
  (out[0].first.sum() + out[1].first.sum()).backward();
  EXPECT_TRUE(torch::equal(x.grad(), 2 * x.detach() * torch::tensor({{4.0F}, {9.0F}})));
  for (int i = 0; i < 2; ++i) EXPECT_EQ(out[i].second.data_ptr(), before[static_cast<std::size_t>(i)]);
}

TEST(Ownership, WhatAReductionReusedBeforeTheCallFailedIsLost) {
  const auto f = pmap(
      [](torch::Tensor t) {
        lax::psum(std::move(t), "i");
        if (lax::axis_index("i") == 1) throw std::runtime_error("no");
        return 0;
      },
      {.axis_name = "i"});
  Sharded<torch::Tensor> x({torch::ones({3}), torch::ones({3})});
  EXPECT_THROW(f(std::move(x)), std::runtime_error);
  EXPECT_THAT([&] { x[0]; },  // NOLINT(bugprone-use-after-move): that is what is tested
              ThrowsMessage<InvalidArgument>(HasSubstr("this value is lost")));
}

TEST(Ownership, ABodyThatOnlyReadsWhatWasMovedLeavesNoTraceWhenItFails) {
  Sharded<torch::Tensor> x({torch::ones({3}), torch::ones({3})});
  const auto drop = pmap([](torch::Tensor t) -> int {
    t = torch::Tensor();
    throw std::runtime_error("no");
  });
  for (int i = 0; i < 3; ++i) EXPECT_THROW(drop(std::move(x)), std::runtime_error);
  EXPECT_TRUE(torch::equal(x[1], torch::ones({3})));  // NOLINT(bugprone-use-after-move): that is what is tested
}

TEST(Ownership, ConstantsAreNeverTakenByStdMove) {
  const Sharded<torch::Tensor> x({torch::ones({3}), torch::ones({3})});
  pmap([](torch::Tensor t) { return t + 1; })(
      std::move(x));  // NOLINT(performance-move-const-arg): that is what is tested
  EXPECT_TRUE(torch::equal(x[0], torch::ones({3})));
}

TEST(Ownership, DonatedValuesMayBeDifferentiatedInside) {
  Sharded<Params> all = params_of(3);
  const std::vector<void*> before = pointers_to_w(all);
  const auto step = pmap([](Params p, torch::Tensor x) {
    const Params g = grad([](const Params& q, const torch::Tensor& at) { return (q.w * at).square().sum(); })(p, x);
    p.w.sub_(g.w, 0.5);
    return p;
  });
  all = step(std::move(all), torch::ones({3, 3}));
  EXPECT_EQ(pointers_to_w(all), before);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(torch::equal(all[i].w, torch::zeros({3})));
}

}  // namespace pmap_ownership_test
}  // namespace brigade
