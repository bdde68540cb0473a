// Leaves that meet in forward and backward: by turns on a device, in lockstep over devices.
#include "brigade/train/leaf_sum.h"

#include <gmock/gmock.h>
#include <torch/csrc/autograd/custom_function.h>

#include "brigade/train/leaf.h"
#include "brigade/transform/pmap.h"
#include "support/errors.h"
#include "train/support.h"

namespace brigade::training {
namespace leaf_sum_test {

using namespace testing;
using torch::autograd::AutogradContext;
using torch::autograd::Variable;
using torch::autograd::variable_list;

// x minus the mean of x over all rows of the step.
struct Centre : public torch::autograd::Function<Centre> {
  static Variable forward(AutogradContext* context, const Variable& x) {
    const auto sums = leaf_sum({x.detach().sum(0), at::full({1}, x.size(0), x.options())}, {.tag = "centre"});
    context->saved_data["rows"] = sums[1].item<double>();
    return x - sums[0] / sums[1];
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const at::Tensor& g = gradients[0];
    return {g - leaf_sum({g.sum(0)}, {.tag = "centre in backward"})[0] / context->saved_data["rows"].toDouble()};
  }
};

at::Tensor centred_loss(const Mlp& model, const Rows& rows) {
  const at::Tensor hidden = Centre::apply(at::addmm(model.b1, rows.x, model.w1));
  return at::cross_entropy_loss(at::addmm(model.b2, Centre::apply(at::tanh(hidden)), model.w2), rows.y);
}

// The same over the whole batch at once.
at::Tensor whole_loss(const Mlp& model, const Rows& rows) {
  const auto centre = [](const at::Tensor& x) { return x - x.mean(0, true); };
  const at::Tensor hidden = centre(at::addmm(model.b1, rows.x, model.w1));
  return at::cross_entropy_loss(at::addmm(model.b2, centre(at::tanh(hidden)), model.w2), rows.y);
}

struct Meeting {
  int devices;
  std::int64_t shards;
  std::int64_t rows;
};

class Meetings : public ::testing::TestWithParam<Meeting> {};
INSTANTIATE_TEST_SUITE_P(Shapes, Meetings,
                         ::testing::Values(Meeting{1, 1, 24}, Meeting{1, 8, 24}, Meeting{2, 8, 24}, Meeting{3, 8, 24},
                                           Meeting{5, 8, 24}, Meeting{8, 8, 24}, Meeting{3, 8, 13}, Meeting{8, 8, 4},
                                           Meeting{2, 6, 24}, Meeting{4, 8, 1}));

TEST_P(Meetings, GiveTheGradientOfTheWholeBatch) {
  const auto [count, shards, rows] = GetParam();
  const Mlp model = make_mlp();
  DataParallel trainer(model, {.global_batch = 24, .logical_shards = shards, .devices = first_devices(count)});
  const Rows data = make_rows(rows);
  const StepReport report = trainer.step(data, centred_loss);

  Mlp whole = model;
  tree::for_each([](const tree::Path&, at::Tensor& t) { t = t.detach().clone().requires_grad_(); }, whole);
  const at::Tensor loss = whole_loss(whole, data);
  const auto expected = torch::autograd::grad({loss}, tree::flatten(whole));
  EXPECT_NEAR(report.loss, loss.item<double>(), 1e-5);
  const auto gradients = trainer.gradients();
  for (std::size_t i = 0; i < expected.size(); ++i)
    EXPECT_TRUE(at::allclose(gradients[i].tensor, expected[i], 1e-4, 1e-6)) << gradients[i].name;
}

TEST(Meetings, GiveTheSameBitsOnAnyNumberOfDevices) {
  std::vector<at::Tensor> first;
  for (const int count : {1, 2, 3, 4, 5, 8}) {
    DataParallel trainer(make_mlp(), {.learning_rate = schedule::constant(0.1),
                                      .global_batch = 24,
                                      .logical_shards = 8,
                                      .devices = first_devices(count)});
    for (int step = 0; step < 6; ++step) trainer.step(make_rows(step % 3 == 2 ? 10 : 24, step), centred_loss);
    const auto values = values_of(trainer.model());
    if (first.empty()) first = values;
    expect_same_bits(values, first, std::to_string(count) + " devices");
  }
}

// Each group of two leaves has its own sum.
TEST(Meetings, AreOfGroups) {
  for (const int count : {1, 2, 3}) {
    DataParallel trainer(make_mlp(), {.global_batch = 6, .logical_shards = 6, .devices = first_devices(count)});
    std::vector<double> sums(6);
    trainer.step(make_rows(5), [&](const Mlp& model, const Rows& rows) {
      const auto leaf = static_cast<std::size_t>(leaf_index());
      sums[leaf] = leaf_sum({at::full({1}, static_cast<double>(leaf + 1))}, {.group = 2})[0].item<double>();
      return mean_loss(model, rows);
    });
    EXPECT_EQ(sums, (std::vector<double>{3, 3, 7, 7, 5, 0})) << count << " devices";
  }
}

TEST(Meetings, OfAPmapAreOfItsDevices) {
  const auto sums = pmap([](at::Tensor x) { return leaf_sum({x})[0]; }, {})(at::arange(1.0F, 5.0F));
  for (int i = 0; i < 4; ++i) EXPECT_EQ(sums[i].item<float>(), 10);
  EXPECT_EQ(leaf_sum({at::ones({2})})[0].sum().item<float>(), 2);
}

TEST(Meetings, WhenALeafThrowsReleaseTheOthers) {
  for (const int count : {1, 2, 3}) {
    for (std::int64_t villain = 0; villain < 6; ++villain) {
      DataParallel trainer(make_mlp(), {.global_batch = 12, .logical_shards = 6, .devices = first_devices(count)});
      const auto before = values_of(trainer.model());
      EXPECT_ERROR(trainer.step(make_rows(12),
                                [&](const Mlp& model, const Rows& rows) {
                                  const at::Tensor loss = centred_loss(model, rows);
                                  if (leaf_index() == villain) throw std::runtime_error("villain");
                                  return loss;
                                }),
                   std::runtime_error, "villain");
      expect_same_bits(before, values_of(trainer.model()));
      EXPECT_GT(trainer.step(make_rows(12), centred_loss).loss, 0);  // the next step works
    }
  }
}

TEST(Meetings, ThatNotAllLeavesComeToAreAnError) {
  for (const int count : {1, 2, 6}) {
    for (const std::int64_t absent : {0, 1, 5}) {
      DataParallel trainer(make_mlp(), {.global_batch = 12, .logical_shards = 6, .devices = first_devices(count)});
      EXPECT_ERROR(trainer.step(make_rows(12),
                                [&](const Mlp& model, const Rows& rows) {
                                  return leaf_index() == absent ? mean_loss(model, rows) : centred_loss(model, rows);
                                }),
                   CollectiveMismatch, "");
      trainer.step(make_rows(12), mean_loss);
    }
  }
}

}  // namespace leaf_sum_test
}  // namespace brigade::training
