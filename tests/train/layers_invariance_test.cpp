// The same bits on any number of devices, with layers that draw and layers that meet.
#include <gmock/gmock.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>

#include "brigade/optim/adam.h"
#include "brigade/train/activation_checkpoint.h"
#include "brigade/train/batch_norm.h"
#include "brigade/train/dropout.h"
#include "train/support.h"

namespace brigade::training {
namespace layers_invariance_test {

using namespace testing;
using torch::nn::Conv2d;
using torch::nn::Conv2dOptions;
using torch::nn::Linear;

struct Images {
  at::Tensor x, y;
};

Images make_images(std::int64_t rows, std::int64_t seed) {
  const random::Key key = random::fold_in(random::key(13), seed);
  return {.x = random::normal(key, {rows, 1, 8, 8}),
          .y = random::randint(random::fold_in(key, 1), {rows}, 0, 4).to(at::kLong)};
}

// Layers of each kind, called through the same interface.
struct Net : torch::nn::Module {
  virtual at::Tensor forward(const at::Tensor& x) = 0;
};

struct Cnn : Net {
  Cnn() {
    conv = register_module("conv", Conv2d(Conv2dOptions(1, 6, 3).padding(1)));
    features = register_module("features", nn::Dropout(0.2, {.of = nn::DropoutOptions::Of::kFeatures}));
    hidden = register_module("hidden", Linear(96, 20));
    drop = register_module("drop", nn::Dropout(0.5));
    last = register_module("last", Linear(20, 4));
  }
  at::Tensor forward(const at::Tensor& x) override {
    const at::Tensor h = at::max_pool2d(features(at::relu(conv(x))), 2);
    return last(drop(at::relu(hidden(h.flatten(1)))));
  }
  Conv2d conv{nullptr};
  Linear hidden{nullptr}, last{nullptr};
  nn::Dropout features{nullptr}, drop{nullptr};
};

// Two residual blocks, one of them computed again in backward; statistics of all leaves, of groups, and of a leaf.
struct ResNet : Net {
  explicit ResNet(std::int64_t group) {
    stem = register_module("stem", Conv2d(Conv2dOptions(1, 6, 3).padding(1).bias(false)));
    norm = register_module("norm", nn::SyncBatchNorm(6, {.group = group}));
    for (auto& block : blocks) {
      block = register_module("block" + std::to_string(&block - blocks.data()),
                              torch::nn::Sequential(Conv2d(Conv2dOptions(6, 6, 3).padding(1).bias(false)),
                                                    nn::SyncBatchNorm(6, {.momentum = std::nullopt, .group = group})));
    }
    last = register_module("last", Linear(6, 4));
  }
  at::Tensor forward(const at::Tensor& x) override {
    at::Tensor h = at::relu(norm(stem(x)));
    h = at::relu(h + blocks[0]->forward(h));
    h = nn::checkpoint(
        [block = blocks[1]](const at::Tensor& own) mutable { return at::relu(own + block->forward(own)); }, h);
    return last(h.mean(at::IntArrayRef{2, 3}));
  }
  Conv2d stem{nullptr};
  nn::SyncBatchNorm norm{nullptr};
  std::array<torch::nn::Sequential, 2> blocks = {nullptr, nullptr};
  Linear last{nullptr};
};

struct Outcome {
  std::vector<at::Tensor> tensors = {};  // parameters, then buffers, of every replica
  std::vector<double> numbers = {};
};

struct Work {
  std::string name;
  std::function<std::shared_ptr<Net>()> model;
  DataParallelOptions options = {};
};

std::ostream& operator<<(std::ostream& stream, const Work& work) { return stream << work.name; }

constexpr int kSteps = 5;

using NetTrainer = DataParallel<std::shared_ptr<Net>>;

NetTrainer make_trainer(const Work& work, int count, std::int64_t shards, bool shared) {
  torch::manual_seed(5);
  DataParallelOptions options = work.options;
  options.devices = first_devices(count);
  options.logical_shards = shards;
  options.global_batch = 3 * shards;
  options.share_parameters = shared;
  options.seed = 17;
  return NetTrainer([&] { return work.model(); }, options);
}

// Every third step is a short one, as at the end of an epoch; the last leaf has two rows.
void take_step(NetTrainer& trainer, int step, Outcome& outcome) {
  const std::int64_t shards = trainer.shape().leaves;
  const std::int64_t rows = step % 3 == 2 ? 3 * (shards / 2) + 2 : 3 * shards;
  const StepReport report = trainer.step(make_images(rows, step), [](std::shared_ptr<Net>& net, const Images& images) {
    return at::cross_entropy_loss(net->forward(images.x), images.y);
  });
  for (const double number : {report.loss, report.weight, report.gradient_norm}) outcome.numbers.push_back(number);
}

void write_tensors(NetTrainer& trainer, Outcome& outcome) {
  for (std::int64_t replica = 0; replica < trainer.shape().devices; ++replica) {
    const auto& model = trainer.replica(static_cast<std::size_t>(replica));
    for (const at::Tensor& one : model->parameters()) outcome.tensors.push_back(one.detach().clone());
    for (const at::Tensor& one : model->buffers()) outcome.tensors.push_back(one.clone());
  }
}

Outcome run(const Work& work, int count, std::int64_t shards, bool shared) {
  NetTrainer trainer = make_trainer(work, count, shards, shared);
  Outcome outcome;
  for (int step = 0; step < kSteps; ++step) take_step(trainer, step, outcome);
  write_tensors(trainer, outcome);
  return outcome;
}

// `other` may have more replicas, all of which are equal to the one of `one`.
void expect_same(const Outcome& other, const Outcome& one, const std::string& what) {
  EXPECT_EQ(other.numbers, one.numbers) << what;
  ASSERT_EQ(other.tensors.size() % one.tensors.size(), 0U);
  for (std::size_t i = 0; i < other.tensors.size(); ++i)
    EXPECT_TRUE(same_bits(other.tensors[i], one.tensors[i % one.tensors.size()])) << what << ", tensor " << i;
}

class TheSameBitsWithLayers : public ::testing::TestWithParam<Work> {};
INSTANTIATE_TEST_SUITE_P(
    Models, TheSameBitsWithLayers,
    ::testing::Values(
        Work{"cnn_with_dropout", [] { return std::make_shared<Cnn>(); }, {.optimizer = optim::adam({})}},
        Work{"resnet_synchronised",
             [] { return std::make_shared<ResNet>(0); },
             {.optimizer = optim::sgd({.momentum = 0.9})}},
        Work{"resnet_in_groups", [] { return std::make_shared<ResNet>(3); }, {.optimizer = optim::adam({})}},
        Work{"resnet_leaf_by_leaf", [] { return std::make_shared<ResNet>(1); }, {.optimizer = optim::adam({})}},
        Work{"resnet_in_bfloat16",
             [] { return std::make_shared<ResNet>(0); },
             {.optimizer = optim::adam({}), .precision = Precision::kBFloat16}}),
    [](const auto& test) { return test.param.name; });

TEST_P(TheSameBitsWithLayers, OnOneToEightDevices) {
  const Outcome one = run(GetParam(), 1, 8, true);
  for (const bool shared : {true, false}) {
    for (const int count : {2, 3, 4, 5, 8})
      expect_same(run(GetParam(), count, 8, shared), one, std::to_string(count) + " devices");
  }
}

TEST_P(TheSameBitsWithLayers, OfSixShards) {
  const Outcome one = run(GetParam(), 1, 6, true);
  for (const bool shared : {true, false}) {
    for (const int count : {2, 3})
      expect_same(run(GetParam(), count, 6, shared), one, std::to_string(count) + " devices");
  }
}

TEST_P(TheSameBitsWithLayers, WithSmallBucketsAndWithoutOverlap) {
  const Outcome one = run(GetParam(), 3, 8, true);
  Work work = GetParam();
  work.options.first_bucket_bytes = work.options.bucket_bytes = 256;
  expect_same(run(work, 3, 8, true), one, "small buckets");
  work.options.overlap = Overlap::kOff;
  expect_same(run(work, 3, 8, true), one, "no overlap");
}

TEST_P(TheSameBitsWithLayers, ContinuingFromACheckpointOnAnotherNumberOfDevices) {
  const Outcome one = run(GetParam(), 1, 8, true);
  for (const bool shared : {true, false}) {
    Outcome outcome;
    NetTrainer first = make_trainer(GetParam(), 2, 8, shared);
    for (int step = 0; step < 3; ++step) take_step(first, step, outcome);
    NetTrainer second = make_trainer(GetParam(), 5, 8, !shared);
    second.restore(first.snapshot());
    for (int step = 3; step < kSteps; ++step) take_step(second, step, outcome);
    write_tensors(second, outcome);
    expect_same(outcome, one, "2 devices, then 5");
  }
}

// Every number of devices with every number of leaves that hold rows: nobody waits for ever.
TEST(LayersThatMeet, EndOnAnyNumberOfDevices) {
  for (int count = 1; count <= 8; ++count) {
    DataParallel trainer([] { return std::make_shared<ResNet>(0); },
                         {.global_batch = 16, .logical_shards = 8, .devices = first_devices(count)});
    for (std::int64_t rows = 1; rows <= 16; ++rows) {
      const StepReport report = trainer.step(make_images(rows, rows), [](auto& net, const Images& images) {
        return at::cross_entropy_loss(net->forward(images.x), images.y);
      });
      EXPECT_EQ(report.rows, rows);
    }
  }
}

}  // namespace layers_invariance_test
}  // namespace brigade::training
