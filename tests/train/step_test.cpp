// One step against a plain loop: leaves, their tree, the division, the update.
#include <gmock/gmock.h>

#include <cmath>

#include "brigade/optim/adam.h"
#include "support/cases.h"
#include "support/errors.h"
#include "train/support.h"

namespace brigade::training {
namespace step_test {

using namespace testing;

struct Shape {
  int devices;
  std::int64_t per_device_batch;
  std::int64_t accumulate;
};

class StepOf : public ::testing::TestWithParam<Shape> {};
INSTANTIATE_TEST_SUITE_P(Shapes, StepOf,
                         ::testing::Values(Shape{1, 6, 1}, Shape{2, 4, 1}, Shape{3, 4, 1}, Shape{2, 3, 3},
                                           Shape{4, 2, 2}, Shape{5, 1, 3}, Shape{9, 1, 1}));

TEST_P(StepOf, SumsLeavesInTheirTreeAndDividesOnce) {
  const auto [count, batch, accumulate] = GetParam();
  const std::int64_t rows = count * batch * accumulate;
  const Mlp model = make_mlp();
  DataParallel trainer(model, {.learning_rate = schedule::constant(0.1),
                               .per_device_batch = batch,
                               .accumulate = accumulate,
                               .devices = first_devices(count)});
  const Rows data = make_rows(rows);
  const StepReport report = trainer.step(data, mean_loss);

  const auto sums = plain_sums(model, data, batch);
  const auto gradients = trainer.gradients();
  ASSERT_EQ(gradients.size(), sums.size());
  double squares = 0;
  for (std::size_t i = 0; i < sums.size(); ++i) {
    const at::Tensor mean = sums[i] / static_cast<double>(rows);
    EXPECT_TRUE(same_bits(gradients[i].tensor, mean)) << gradients[i].name;
    squares += mean.to(at::kDouble).square().sum().item<double>();
    const at::Tensor before = tree::flatten(model)[i];
    EXPECT_TRUE(at::allclose(tree::flatten(trainer.model())[i], before - 0.1 * mean, 1e-6, 1e-7));
  }
  EXPECT_NEAR(report.gradient_norm, std::sqrt(squares), 1e-9 * std::sqrt(squares));
  EXPECT_NEAR(report.loss, mean_loss(model, data).item<double>(), 1e-6);
  EXPECT_EQ(report.rows, rows);
  EXPECT_EQ(report.leaves, count * accumulate);
  EXPECT_EQ(report.learning_rate, 0.1);
}

TEST_P(StepOf, LeavesEveryReplicaEqual) {
  const auto [count, batch, accumulate] = GetParam();
  for (const bool shared : {true, false}) {
    DataParallel trainer(make_mlp(), {.optimizer = optim::adamw({}),
                                      .per_device_batch = batch,
                                      .accumulate = accumulate,
                                      .devices = first_devices(count),
                                      .share_parameters = shared});
    for (int step = 0; step < 3; ++step) trainer.step(make_rows(count * batch * accumulate, step), mean_loss);
    for (int replica = 1; replica < count; ++replica) {
      const auto first = tree::flatten(trainer.replica(0));
      const auto other = tree::flatten(trainer.replica(static_cast<std::size_t>(replica)));
      for (std::size_t i = 0; i < first.size(); ++i) {
        EXPECT_TRUE(same_bits(first[i], other[i]));
        EXPECT_EQ(first[i].data_ptr() == other[i].data_ptr(), shared);
      }
    }
  }
}

// A last batch of any size, also smaller than the number of devices.
TEST(ShortStep, HasTheGradientOfTheTrueMean) {
  const Mlp model = make_mlp();
  for (std::int64_t rows = 1; rows < 4 * 3; ++rows) {
    DataParallel trainer(model, {.per_device_batch = 3, .devices = first_devices(4)});
    const Rows data = make_rows(rows, rows);
    trainer.step(data, mean_loss);

    Mlp whole = model;
    tree::for_each([](const tree::Path&, at::Tensor& t) { t = t.detach().clone().requires_grad_(); }, whole);
    const auto expected = torch::autograd::grad({mean_loss(whole, data)}, tree::flatten(whole));
    const auto gradients = trainer.gradients();
    for (std::size_t i = 0; i < expected.size(); ++i) {
      EXPECT_TRUE(at::allclose(gradients[i].tensor, expected[i], 1e-5, 1e-7)) << rows << " rows, " << gradients[i].name;
    }
  }
}

struct Linear {
  at::Tensor w;
};

TEST(ShortStep, AgreesWithTheRecordedTrueMean) {
  const auto file = cases::load("torch/uneven.json");
  for (const auto& one : file.at("cases")) {
    const at::Tensor x = cases::tensor_of(one.at("x"));
    const Rows data = {x, at::tensor(one.at("y").get<std::vector<std::int64_t>>())};
    const auto samples = one.at("samples_per_device").get<std::vector<std::int64_t>>();
    DataParallel trainer(Linear{cases::tensor_of(one.at("w"))},
                         {.per_device_batch = samples.front() > 1 ? samples.front() : 1,
                          .devices = first_devices(static_cast<int>(samples.size()))});
    const StepReport report = trainer.step(data, [](const Linear& model, const Rows& rows) {
      return at::cross_entropy_loss(at::matmul(rows.x, model.w), rows.y);
    });
    EXPECT_NEAR(report.loss, one.at("loss").get<double>(), 2e-6);
    EXPECT_TRUE(at::allclose(trainer.gradients()[0].tensor, cases::tensor_of(one.at("grad")), 1e-5, 1e-6));
  }
}

// Counts of tokens: every leaf weighs what it holds.
TEST(Counts, WeighLeaves) {
  struct Tokens {
    at::Tensor x, mask;
  };
  const Tokens data = {random::normal(random::key(1), {8, 6}),
                       (random::uniform(random::key(2), {8, 6}) < 0.4).to(at::kFloat)};
  const double all = data.mask.sum().item<double>();
  const at::Tensor w = random::normal(random::key(3), {6});
  const auto masked = [](const Linear& model, const Tokens& rows) {
    return ((rows.x * model.w).square() * rows.mask).sum();
  };
  const at::Tensor expected = (2 * data.x.square() * w * data.mask).sum(0) / all;

  const std::vector<std::function<Loss(const Linear&, const Tokens&)>> forms = {
      [&](const Linear& model, const Tokens& rows) {
        return sum_over(masked(model, rows), rows.mask.sum().item<double>());
      },
      [&](const Linear& model, const Tokens& rows) {  // a mean over nothing is NaN, and weighs nothing
        const double count = rows.mask.sum().item<double>();
        return mean_over(masked(model, rows) / count, count);
      }};
  for (const auto& form : forms) {
    DataParallel trainer(Linear{w}, {.global_batch = 8, .logical_shards = 8, .devices = first_devices(3)});
    const StepReport report = trainer.step(data, form);
    EXPECT_EQ(report.weight, all);
    EXPECT_NEAR(report.loss, masked(Linear{w}, data).item<double>() / all, 1e-5);
    EXPECT_TRUE(at::allclose(trainer.gradients()[0].tensor, expected, 1e-5, 1e-6));
  }
}

TEST(Metrics, AreWeightedByTheirOwnCounts) {
  DataParallel trainer(make_mlp(), {.per_device_batch = 3, .devices = first_devices(3)});
  const Rows data = make_rows(7);
  const StepReport report = trainer.step(data, [](const Mlp& model, const Rows& rows) {
    const at::Tensor scores = model(rows.x);
    const double right = (scores.argmax(1) == rows.y).sum().item<double>();
    return Loss(at::cross_entropy_loss(scores, rows.y)).with("accuracy", right, static_cast<double>(rows.y.size(0)));
  });
  const double right = (make_mlp()(data.x).argmax(1) == data.y).sum().item<double>();
  EXPECT_DOUBLE_EQ(report.metrics.at("accuracy"), right / 7);
}

TEST(Evaluation, CountsEveryRowOnce) {
  DataParallel trainer(make_mlp(), {.per_device_batch = 4, .devices = first_devices(3)});
  for (const std::int64_t rows : {1, 5, 12, 100}) {
    const Rows data = make_rows(rows);
    const at::Tensor right = trainer.evaluate(
        data, [](const Mlp& model, const Rows& part) { return (model(part.x).argmax(1) == part.y).sum(); });
    EXPECT_EQ(right.item<std::int64_t>(), (make_mlp()(data.x).argmax(1) == data.y).sum().item<std::int64_t>());
  }
}

}  // namespace step_test
}  // namespace brigade::training
