// Segments that are computed again in backward: the same values, draws and gradients as without.
#include "brigade/train/activation_checkpoint.h"

#include <ATen/autocast_mode.h>
#include <gmock/gmock.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>

#include "brigade/base/error.h"
#include "brigade/train/batch_norm.h"
#include "brigade/train/dropout.h"
#include "brigade/train/leaf.h"
#include "brigade/transform/grad.h"
#include "support/errors.h"
#include "train/support.h"

namespace brigade::training {
namespace activation_checkpoint_test {

using namespace testing;
using torch::nn::Linear;

enum class Plan { kPlain, kCheckpointed, kNested, kTwice };

// Dropout and a shared layer in segments. `calls` counts the forward passes of the middle.
struct NetImpl : torch::nn::Module {
  explicit NetImpl(Plan how) : plan(how) {
    first = register_module("first", Linear(70, 20));
    middle = register_module("middle", Linear(20, 20));
    drop = register_module("drop", nn::Dropout(0.5));
    norm = register_module("norm", nn::SyncBatchNorm(20));
    last = register_module("last", Linear(20, 5));
  }
  at::Tensor segment(const at::Tensor& h) {
    ++calls;
    return drop(at::relu(norm(middle(drop(h)))));
  }
  at::Tensor run(const at::Tensor& h) {
    const auto one = [this](const at::Tensor& x) { return segment(x); };
    const auto both = [one](const at::Tensor& x) { return nn::checkpoint(one, x) * 2; };
    switch (plan) {
      case Plan::kPlain:
        return segment(h);
      case Plan::kCheckpointed:
        return nn::checkpoint(one, h);
      case Plan::kNested:
        return nn::checkpoint(both, h) / 2;
      case Plan::kTwice:
        return nn::checkpoint(one, nn::checkpoint(one, h));
    }
    return {};
  }
  at::Tensor forward(const at::Tensor& x) { return last(run(at::relu(first(x)))); }
  Plan plan;
  std::atomic<int> calls = 0;
  Linear first{nullptr}, middle{nullptr}, last{nullptr};
  nn::Dropout drop{nullptr};
  nn::SyncBatchNorm norm{nullptr};
};
TORCH_MODULE(Net);

at::Tensor net_loss(Net& net, const Rows& rows) { return at::cross_entropy_loss(net->forward(rows.x), rows.y); }

struct Outcome {
  std::vector<at::Tensor> tensors = {};  // parameters, buffers, gradients
  std::vector<double> losses = {};
  int calls = 0;
};

Outcome train(Plan plan, int devices, DataParallelOptions options = {}) {
  torch::manual_seed(3);
  options.learning_rate = schedule::constant(0.1);
  options.global_batch = 12;
  options.logical_shards = 6;
  options.devices = first_devices(devices);
  DataParallel trainer([plan] { return Net(plan); }, options);
  Outcome outcome;
  for (int step = 0; step < 4; ++step)
    outcome.losses.push_back(trainer.step(make_rows(step == 2 ? 7 : 12, step), net_loss).loss);
  for (const at::Tensor& one : trainer.model()->parameters()) outcome.tensors.push_back(one.detach().clone());
  for (const at::Tensor& one : trainer.model()->buffers()) outcome.tensors.push_back(one.clone());
  for (const NamedTensor& one : trainer.gradients()) outcome.tensors.push_back(one.tensor);
  for (std::size_t i = 0; i < static_cast<std::size_t>(devices); ++i) outcome.calls += trainer.replica(i)->calls;
  return outcome;
}

void expect_same(const Outcome& one, const Outcome& other) {
  EXPECT_EQ(one.losses, other.losses);
  ASSERT_EQ(one.tensors.size(), other.tensors.size());
  for (std::size_t i = 0; i < one.tensors.size(); ++i) EXPECT_TRUE(same_bits(one.tensors[i], other.tensors[i])) << i;
}

constexpr int kLeavesOfARun = 6 + 6 + 4 + 6;

TEST(Checkpoint, TrainsAsWithoutItBitForBit) {
  const Outcome plain = train(Plan::kPlain, 1);
  EXPECT_EQ(plain.calls, kLeavesOfARun);
  for (const int devices : {1, 2, 3, 6}) {
    const Outcome outcome = train(Plan::kCheckpointed, devices);
    expect_same(outcome, plain);
    EXPECT_EQ(outcome.calls, 2 * kLeavesOfARun);
  }
}

TEST(Checkpoint, InsideACheckpointTrainsAsWithoutIt) {
  const Outcome plain = train(Plan::kPlain, 1);
  for (const int devices : {1, 3}) {
    const Outcome outcome = train(Plan::kNested, devices);
    expect_same(outcome, plain);
    EXPECT_EQ(outcome.calls, 3 * kLeavesOfARun);
  }
}

// Parameters of a segment that is run twice get their gradients in two parts, with buckets of any size.
TEST(Checkpoint, OfALayerThatIsUsedTwiceGivesTheSameOnAnyNumberOfDevices) {
  const Outcome one = train(Plan::kTwice, 1);
  for (const int devices : {2, 4, 6}) expect_same(train(Plan::kTwice, devices), one);
  expect_same(train(Plan::kTwice, 3, {.share_parameters = false, .first_bucket_bytes = 1, .bucket_bytes = 256}), one);
}

TEST(Checkpoint, ComputesAgainUnderTheSameAutocast) {
  const Outcome plain = train(Plan::kPlain, 2, {.precision = Precision::kBFloat16});
  expect_same(train(Plan::kCheckpointed, 3, {.precision = Precision::kBFloat16}), plain);
  EXPECT_NE(plain.losses, train(Plan::kPlain, 2).losses);
}

TEST(Checkpoint, WithoutGradientsIsACall) {
  DataParallel trainer([] { return Net(Plan::kCheckpointed); }, {.per_device_batch = 6, .devices = first_devices(2)});
  trainer.evaluate(make_rows(12), [](Net& net, const Rows& rows) {
    const at::Tensor y = net->forward(rows.x);
    EXPECT_FALSE(y.requires_grad());
    return y.sum();
  });
  EXPECT_EQ(trainer.replica(0)->calls + trainer.replica(1)->calls, 2);
}

// What autograd gives without a checkpoint.
TEST(Checkpoint, TakesAndGivesTreesAndTensorsWithoutAGradient) {
  struct State {
    at::Tensor h;
    std::vector<at::Tensor> more;
    int times = 2;
  };
  const auto function = [](const State& s, const at::Tensor& index) {
    return State{.h = (s.h * s.more[0]).pow(s.times), .more = {s.h + 1, index + 1, s.more[0]}, .times = 3};
  };
  const State input = {at::rand({4}).requires_grad_(), {at::rand({4}).requires_grad_()}};
  const auto use = [](const State& out) { return (out.h + out.more[0] * out.more[2]).sum(); };
  const at::Tensor index = at::arange(3);
  State out = nn::checkpoint(function, input, index);
  EXPECT_EQ(out.times, 3);
  EXPECT_FALSE(out.more[1].requires_grad());
  EXPECT_TRUE(at::equal(out.more[1], index + 1));
  const at::Tensor expected_value = use(function(input, index));
  const auto expected = torch::autograd::grad({expected_value}, {input.h, input.more[0]});
  EXPECT_TRUE(at::equal(use(out), expected_value));
  const auto found = torch::autograd::grad({use(out)}, {input.h, input.more[0]});  // not only backward()
  for (std::size_t i = 0; i < 2; ++i) EXPECT_TRUE(at::allclose(found[i], expected[i]));
  out = nn::checkpoint(function, input, index);
  out.h.mul_(2);  // results may be changed in place
  out.h.sum().backward();
  EXPECT_TRUE(at::allclose(input.h.grad(), 4 * (input.h * input.more[0] * input.more[0]).detach()));
}

TEST(Checkpoint, KeepsInputsOnlyUntilBackward) {
  std::weak_ptr<int> kept;
  const at::Tensor x = at::rand({3}).requires_grad_();
  at::Tensor y;
  {
    const auto held = std::make_shared<int>(1);
    kept = held;
    y = nn::checkpoint([held](const at::Tensor& h) { return h.sin().exp(); }, x);
  }
  EXPECT_FALSE(kept.expired());
  y.sum().backward(/*gradient=*/{}, /*retain_graph=*/true);
  const at::Tensor once = x.grad().clone();
  y.sum().backward();
  EXPECT_TRUE(at::allclose(x.grad(), 2 * once));
  EXPECT_TRUE(kept.expired());
  EXPECT_ERROR(y.sum().backward(), InvalidArgument, "retain_graph");
}

TEST(Checkpoint, InAGradOfTreesTakesParametersAsInputs) {
  const Mlp model = make_mlp();
  const Rows rows = make_rows(6);
  const auto through = [](const Mlp& p, const at::Tensor& x, const at::Tensor& y) {
    return at::cross_entropy_loss(nn::checkpoint([](const Mlp& own, const at::Tensor& h) { return own(h); }, p, x), y);
  };
  const auto plain = [](const Mlp& p, const at::Tensor& x, const at::Tensor& y) {
    return at::cross_entropy_loss(p(x), y);
  };
  const auto found = tree::flatten(grad(through)(model, rows.x, rows.y));
  const auto expected = tree::flatten(grad(plain)(model, rows.x, rows.y));
  expect_same_bits(found, expected);
  const auto captured = [](const Mlp& p, const at::Tensor& x, const at::Tensor& y) {
    const at::Tensor h = at::addmm(p.b1, x, p.w1);
    return at::cross_entropy_loss(nn::checkpoint([p](const at::Tensor& own) { return at::addmm(p.b2, own, p.w2); }, h),
                                  y);
  };
  EXPECT_ERROR(grad(captured)(model, rows.x, rows.y), InvalidArgument, "Pass it as an input of the checkpoint");
}

TEST(Checkpoint, RefusesWhatWouldLoseAGradient) {
  const at::Tensor x = at::rand({3}).requires_grad_();
  const at::Tensor outside = x.exp();
  EXPECT_ERROR(nn::checkpoint([outside](const at::Tensor& h) { return h * outside; }, x).sum().backward(),
               InvalidArgument, "computed outside of it, by ExpBackward0");
  EXPECT_ERROR(torch::autograd::grad({nn::checkpoint([](const at::Tensor& h) { return h.exp(); }, x).sum()}, {x}, {},
                                     true, /*create_graph=*/true),
               InvalidArgument, "no second derivative");
  at::Tensor changed = x * 1;
  const at::Tensor y = nn::checkpoint([](const at::Tensor& h) { return h.exp(); }, changed);
  changed.mul_(2);
  EXPECT_ERROR(y.sum().backward(), c10::Error, "modified by an inplace operation");
}

TEST(Checkpoint, RefusesAFunctionThatComputesSomethingElse) {
  auto calls = std::make_shared<int>(0);
  const auto y = nn::checkpoint(
      [calls](const at::Tensor& h) { return std::vector<at::Tensor>(static_cast<std::size_t>(++*calls), h * 2); },
      at::rand({3}).requires_grad_());
  EXPECT_ERROR(y[0].sum().backward(), InvalidArgument, "gave 1 tensors, and 2 when it was computed again");
}

// Its exception is the one of the step, the other leaves are released from the middle of their backward, and the next step works.
TEST(Checkpoint, ThatThrowsInItsRecomputationLeavesEverythingAsItWas) {
  for (const int devices : {1, 2, 6}) {
    torch::manual_seed(3);
    DataParallel trainer([] { return Net(Plan::kCheckpointed); },
                         {.global_batch = 12, .logical_shards = 6, .devices = first_devices(devices)});
    const auto before = trainer.model()->first->weight.detach().clone();
    const auto running = trainer.model()->norm->running_mean.clone();
    for (int repeat = 0; repeat < 70; ++repeat) {  // more often than autograd nests in one thread
      EXPECT_ERROR(
          trainer.step(make_rows(12),
                       [](Net& net, const Rows& rows) {
                         const at::Tensor h = nn::checkpoint(
                             [](const at::Tensor& x) {
                               if (recomputes() && leaf_index() == 4) throw std::runtime_error("in backward");
                               return x * 1;
                             },
                             net->forward(rows.x));
                         return at::cross_entropy_loss(net->run(at::zeros({rows.x.size(0), 20})).sum() + h, rows.y);
                       }),
          std::runtime_error, "in backward");
    }
    EXPECT_TRUE(same_bits(trainer.model()->first->weight, before));
    EXPECT_TRUE(same_bits(trainer.model()->norm->running_mean, running));
    EXPECT_GT(trainer.step(make_rows(12), net_loss).loss, 0);
  }
}

}  // namespace activation_checkpoint_test
}  // namespace brigade::training
