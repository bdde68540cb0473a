// Dropout that draws from the leaf's key.
#include "brigade/train/dropout.h"

#include <gmock/gmock.h>
#include <torch/nn/modules/dropout.h>

#include <cmath>
#include <map>
#include <mutex>
#include <sstream>

#include "brigade/base/error.h"
#include "brigade/random/dropout.h"
#include "brigade/train/leaf.h"
#include "support/errors.h"
#include "train/support.h"

namespace brigade::training {
namespace dropout_test {

using namespace testing;
using Of = nn::DropoutOptions::Of;
using Form = nn::DropoutOptions::Form;

constexpr double kRate = 0.3;

at::Tensor drop(nn::Dropout layer, const at::Tensor& x, std::int64_t seed = 1) {
  const LeafScope leaf(random::key(seed), 0, 0);
  return layer(x);
}

TEST(Dropout, DropsTheShareItWasToldAndScalesTheRest) {
  const at::Tensor x = at::ones({300, 400});
  const at::Tensor y = drop(nn::Dropout(kRate), x);
  const double count = static_cast<double>(x.numel());
  const double dropped = (y == 0).sum().item<double>() / count;
  EXPECT_NEAR(dropped, kRate, 5 * std::sqrt(kRate * (1 - kRate) / count));  // five standard deviations
  EXPECT_TRUE(at::allclose(y.masked_select(y != 0), at::full({1}, 1 / (1 - kRate))));
  // Rows and columns alike.
  const double of_line = 6 * std::sqrt(kRate * (1 - kRate) / 300);
  for (const int dim : {0, 1})
    EXPECT_LT(((y == 0).to(at::kFloat).mean(dim) - kRate).abs().max().item<double>(), of_line);
}

TEST(Dropout, IsTheMaskOfTheLeafsDraw) {
  const random::Key key = random::key(9);
  const at::Tensor x = random::normal(random::key(2), {5, 7});
  const LeafScope leaf(key, 3, 1);
  nn::Dropout layer(kRate);
  for (int draw = 0; draw < 3; ++draw)
    EXPECT_TRUE(same_bits(layer(x), random::dropout(random::fold_in(key, draw), x, kRate)));
}

TEST(Dropout, PassesGradientsWhereItKeeps) {
  const at::Tensor x = random::normal(random::key(2), {50, 7}).requires_grad_();
  const at::Tensor y = drop(nn::Dropout(kRate), x);
  y.sum().backward();
  EXPECT_TRUE(at::allclose(x.grad(), (y != 0).to(at::kFloat) / (1 - kRate)));
}

TEST(Dropout, OfFeaturesKeepsOrDropsThemWhole) {
  const at::Tensor y = drop(nn::Dropout(kRate, {.of = Of::kFeatures}), at::ones({40, 50, 3, 2}));
  const at::Tensor of_feature = y.flatten(2);
  EXPECT_TRUE(at::equal(of_feature.amin(2), of_feature.amax(2)));
  EXPECT_NEAR((y == 0).to(at::kFloat).mean().item<double>(), kRate, 5 * std::sqrt(kRate * (1 - kRate) / 2000));
  EXPECT_ERROR(drop(nn::Dropout(kRate, {.of = Of::kFeatures}), at::ones({4})), ShapeError, "1 dimensions");
}

TEST(Dropout, OfTheAlphaFormKeepsMeanAndVarianceOfItsInput) {
  for (const Of of : {Of::kElements, Of::kFeatures}) {
    const at::Tensor x = random::normal(random::key(2), {400, 300});
    const at::Tensor y = drop(nn::Dropout(kRate, {.of = of, .form = Form::kAlpha}), x);
    EXPECT_NEAR(y.mean().item<double>(), 0, 0.02);
    EXPECT_NEAR(y.var().item<double>(), 1, 0.03);
    const double dropped = (y == std::get<0>(y.flatten().mode())).to(at::kFloat).mean().item<double>();
    EXPECT_NEAR(dropped, kRate, 5 * std::sqrt(kRate * (1 - kRate) / static_cast<double>(y.numel())));
  }
}

TEST(Dropout, OfNothingAndOfAll) {
  const at::Tensor x = at::full({3}, INFINITY).requires_grad_();
  EXPECT_TRUE(drop(nn::Dropout(0.0), x).is_same(x));
  const at::Tensor y = drop(nn::Dropout(1.0), x);
  EXPECT_TRUE(at::equal(y, at::zeros({3})));
  y.sum().backward();
  EXPECT_TRUE(at::equal(x.grad(), at::zeros({3})));
}

TEST(Dropout, IsTheIdentityInEvaluation) {
  nn::Dropout layer(kRate);
  layer->eval();
  const at::Tensor x = at::ones({4});
  EXPECT_TRUE(layer(x).is_same(x));  // and needs no leaf
}

TEST(Dropout, SaysWhatIsWrong) {
  EXPECT_ERROR(nn::Dropout(1.5), InvalidArgument, "p is 1.5");
  EXPECT_ERROR(nn::Dropout(kRate)(at::ones({4})), InvalidArgument, "put the model into evaluation mode");
}

struct NetImpl : torch::nn::Module {
  NetImpl() { weight = register_parameter("weight", at::ones({1})); }
  nn::Dropout first = register_module("first", nn::Dropout(0.5));
  nn::Dropout second = register_module("second", nn::Dropout(torch::nn::DropoutOptions(0.5)));
  at::Tensor weight;
};
TORCH_MODULE(Net);

// [step][leaf][call] of a run.
using Masks = std::map<std::array<std::int64_t, 3>, at::Tensor>;

Masks masks_of(int devices, std::int64_t seed) {
  DataParallel trainer([] { return Net(); },
                       {.global_batch = 8, .logical_shards = 4, .devices = first_devices(devices), .seed = seed});
  Masks masks;
  std::mutex mutex;
  for (int step = 0; step < 2; ++step) {
    trainer.step(at::ones({8, 20}), [&](Net& net, const at::Tensor& rows) {
      const std::array parts = {net->first(rows), net->second(rows), net->first(rows)};
      const std::lock_guard lock(mutex);
      for (std::int64_t call = 0; call < 3; ++call)
        masks[{leaf_step(), leaf_index(), call}] = parts[static_cast<std::size_t>(call)];
      return (parts[0] * net->weight).sum();
    });
  }
  return masks;
}

TEST(Dropout, DiffersByStepLeafAndCallAndNotByDevice) {
  const Masks one = masks_of(1, 0);
  ASSERT_EQ(one.size(), 2U * 4 * 3);
  for (auto a = one.begin(); a != one.end(); ++a) {
    for (auto b = std::next(a); b != one.end(); ++b) EXPECT_FALSE(at::equal(a->second, b->second));
  }
  for (const int devices : {2, 3, 4}) {
    const Masks other = masks_of(devices, 0);
    for (const auto& [place, mask] : one) EXPECT_TRUE(same_bits(mask, other.at(place))) << devices << " devices";
  }
  EXPECT_FALSE(at::equal(one.at({0, 0, 0}), masks_of(1, 1).at({0, 0, 0})));
}

TEST(Dropout, IsOffInEvaluateAndOnAgainAfterwards) {
  DataParallel trainer([] { return Net(); }, {.per_device_batch = 4, .devices = first_devices(2)});
  const at::Tensor x = at::ones({8, 20});
  const auto sum = [](Net& net, const at::Tensor& rows) { return net->first(rows).sum(); };
  EXPECT_EQ(trainer.evaluate(x, sum).item<double>(), 160);
  trainer.step(x, [&](Net& net, const at::Tensor& rows) {
    EXPECT_NE(sum(net, rows).item<double>(), 80);
    return net->weight.sum();
  });
}

TEST(Dropout, Prints) {
  std::stringstream text;
  text << *nn::Dropout() << *nn::Dropout(0.25, {.of = Of::kFeatures, .form = Form::kAlpha});
  EXPECT_EQ(text.str(), "brigade::nn::Dropout(p=0.5)brigade::nn::Dropout(p=0.25, of features, alpha)");
}

}  // namespace dropout_test
}  // namespace brigade::training
