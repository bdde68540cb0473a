// Modules of libtorch as models: what is tied, frozen, unused, loaded later, or somebody else's.
#include <gmock/gmock.h>
#include <torch/nn/cloneable.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/pimpl.h>
#include <torch/nn/utils/clip_grad.h>
#include <torch/optim/adamw.h>
#include <torch/optim/sgd.h>
#include <torch/serialize.h>

#include <sstream>

#include "brigade/base/error.h"
#include "brigade/optim/adam.h"
#include "brigade/train/leaf.h"
#include "support/errors.h"
#include "train/support.h"

namespace brigade::training {
namespace module_test {

using namespace testing;

struct NetImpl : torch::nn::Cloneable<NetImpl> {
  NetImpl() { reset(); }
  void reset() override {
    first = register_module("first", torch::nn::Linear(70, 20));
    second = register_module("second", torch::nn::Linear(20, 5));
  }
  at::Tensor forward(const at::Tensor& x) { return second(at::relu(first(x))); }
  torch::nn::Linear first{nullptr}, second{nullptr};
};
TORCH_MODULE(Net);

at::Tensor net_loss(Net& net, const Rows& rows) { return at::cross_entropy_loss(net->forward(rows.x), rows.y); }

std::vector<at::Tensor> parameters_of(const torch::nn::Module& module) {
  std::vector<at::Tensor> values;
  for (const at::Tensor& tensor : module.parameters()) values.push_back(tensor.detach().clone());
  return values;
}

TEST(AModule, ByAFactoryStartsEqualAndDrawsNoMoreThanOnce) {
  torch::manual_seed(3);
  Net alone;
  const at::Tensor next = at::rand({4});
  torch::manual_seed(3);
  DataParallel trainer([] { return Net(); }, {.per_device_batch = 2, .devices = first_devices(3)});
  EXPECT_TRUE(same_bits(at::rand({4}), next));
  for (std::size_t i = 0; i < 3; ++i) expect_same_bits(parameters_of(*trainer.replica(i)), parameters_of(*alone));
}

TEST(AModule, IsTheFirstReplicaAndClonedForTheOthers) {
  torch::manual_seed(3);
  Net net;
  const auto start = parameters_of(*net);
  const at::Tensor next = at::rand({4});
  torch::manual_seed(3);
  Net same;
  DataParallel trainer(same, {.per_device_batch = 2, .devices = first_devices(3), .share_parameters = false});
  EXPECT_TRUE(same_bits(at::rand({4}), next));
  EXPECT_EQ(trainer.replica(0).get(), same.get());
  for (std::size_t i = 0; i < 3; ++i) expect_same_bits(parameters_of(*trainer.replica(i)), start);
  EXPECT_NE(trainer.replica(1).get(), same.get());
  trainer.step(make_rows(6), net_loss);
  for (std::size_t i = 1; i < 3; ++i)
    expect_same_bits(parameters_of(*trainer.replica(i)), parameters_of(*trainer.replica(0)));
}

TEST(AModule, ThatCannotBeClonedIsRefusedWithTheAdvice) {
  struct Plain : torch::nn::Module {
    Plain() { weight = register_parameter("weight", at::zeros({2})); }
    at::Tensor weight;
  };
  expect_error<InvalidArgument>(
      [] { DataParallel(std::make_shared<Plain>(), {.per_device_batch = 1, .devices = first_devices(2)}); },
      {"Plain cannot be cloned", "torch::nn::Cloneable", "factory"});
}

TEST(AModule, KeepsTheModeOfALayerThatIsFrozenByEvalOverAnEvaluation) {
  DataParallel trainer(
      [] {
        Net net;
        net->second->eval();
        return net;
      },
      {.per_device_batch = 2, .devices = first_devices(2)});
  const auto measure = [](Net& net, const Rows& rows) {
    EXPECT_FALSE(net->is_training() || net->first->is_training());
    return net->forward(rows.x).sum();
  };
  trainer.evaluate(make_rows(4), measure);
  EXPECT_THROW(
      trainer.evaluate(make_rows(4), [](Net&, const Rows&) -> at::Tensor { throw InvalidArgument("on purpose"); }),
      InvalidArgument);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_TRUE(trainer.replica(i)->is_training());
    EXPECT_TRUE(trainer.replica(i)->first->is_training());
    EXPECT_FALSE(trainer.replica(i)->second->is_training());
  }
}

TEST(AModule, TrainsLikeLibtorchsOptimizer) {
  torch::manual_seed(4);
  Net alone;
  torch::manual_seed(4);
  DataParallel trainer([] { return Net(); }, {.optimizer = optim::adamw({.weight_decay = 0.1}),
                                              .learning_rate = schedule::constant(0.01),
                                              .per_device_batch = 4,
                                              .devices = first_devices(3)});
  torch::optim::AdamW peer(alone->parameters(), torch::optim::AdamWOptions(0.01).weight_decay(0.1));
  for (int step = 0; step < 20; ++step) {
    const Rows rows = make_rows(12, step);
    trainer.step(rows, net_loss);
    peer.zero_grad();
    net_loss(alone, rows).backward();
    peer.step();
  }
  const auto ours = parameters_of(*trainer.model()), theirs = parameters_of(*alone);
  for (std::size_t i = 0; i < ours.size(); ++i) EXPECT_TRUE(at::allclose(ours[i], theirs[i], 1e-3, 1e-4));
}

TEST(AnOptimizerOfLibtorch, UpdatesOnTheAveragedGradient) {
  for (const bool shared : {true, false}) {
    torch::manual_seed(4);
    Net alone;
    torch::manual_seed(4);
    DataParallel trainer([] { return Net(); }, {.torch_optimizer =
                                                    [](std::vector<at::Tensor> parameters) {
                                                      return std::make_unique<torch::optim::SGD>(
                                                          std::move(parameters),
                                                          torch::optim::SGDOptions(1).momentum(0.9).nesterov(true));
                                                    },
                                                .learning_rate = schedule::constant(0.05),
                                                .clip = optim::clip_norm(0.5),
                                                .per_device_batch = 4,
                                                .devices = first_devices(3),
                                                .share_parameters = shared});
    torch::optim::SGD peer(alone->parameters(), torch::optim::SGDOptions(0.05).momentum(0.9).nesterov(true));
    for (int step = 0; step < 10; ++step) {
      const Rows rows = make_rows(12, step);
      const StepReport report = trainer.step(rows, net_loss);
      peer.zero_grad();
      net_loss(alone, rows).backward();
      const double norm = torch::nn::utils::clip_grad_norm_(alone->parameters(), 0.5);
      EXPECT_NEAR(report.gradient_norm, norm, 1e-4 * norm);
      peer.step();
    }
    const auto theirs = parameters_of(*alone);
    for (std::size_t r = 0; r < 3; ++r) {
      const auto ours = parameters_of(*trainer.replica(r));
      for (std::size_t i = 0; i < ours.size(); ++i) EXPECT_TRUE(at::allclose(ours[i], theirs[i], 1e-4, 1e-5));
    }
  }
}

struct TiedImpl : torch::nn::Module {
  TiedImpl() {
    words = register_module("words", torch::nn::Embedding(7, 6));
    head = register_parameter("head", words->weight);  // tied: one tensor under two names
    idle = register_parameter("idle", at::ones({3}));
    sometimes = register_parameter("sometimes", at::ones({7}));
    frozen = register_parameter("frozen", at::ones({7}) * 2, /*requires_grad=*/false);
  }
  at::Tensor forward(const at::Tensor& y) { return at::matmul(words(y), words->weight.t()) * frozen; }
  torch::nn::Embedding words{nullptr};
  at::Tensor head, idle, sometimes, frozen;
};
TORCH_MODULE(Tied);

TEST(Parameters, ThatAreTiedFrozenOrUnusedAreHandled) {
  DataParallel trainer([] { return Tied(); }, {.optimizer = optim::adam({}),
                                               .learning_rate = schedule::constant(0.1),
                                               .global_batch = 12,
                                               .logical_shards = 6,
                                               .devices = first_devices(3)});
  EXPECT_EQ(trainer.gradients().size(), 3U);  // words.weight once
  const auto frozen = trainer.model()->frozen.clone();
  const auto loss = [](Tied& net, const Rows& rows) { return at::cross_entropy_loss(net->forward(rows.y), rows.y); };
  const auto loss_of_some = [&](Tied& net, const Rows& rows) {
    // Only the fourth leaf uses it.
    return leaf_index() == 3 ? loss(net, rows) + net->sometimes.square().sum() : loss(net, rows);
  };
  StepReport report = trainer.step(make_rows(12), loss);
  EXPECT_THAT(report.unused_parameters, ::testing::UnorderedElementsAre("idle", "sometimes"));
  EXPECT_TRUE(same_bits(trainer.model()->idle, at::ones({3})));
  EXPECT_TRUE(same_bits(trainer.model()->sometimes, at::ones({7})));

  report = trainer.step(make_rows(12, 1), loss_of_some);
  EXPECT_THAT(report.unused_parameters, ::testing::ElementsAre("idle"));
  // Its first update, so Adam moves it by the learning rate whatever its gradient is.
  EXPECT_TRUE(at::allclose(trainer.model()->sometimes, at::full({7}, 0.9), 1e-5, 1e-6));
  EXPECT_TRUE(same_bits(trainer.model()->idle, at::ones({3})));
  EXPECT_TRUE(same_bits(trainer.model()->frozen, frozen));
  EXPECT_TRUE(same_bits(trainer.model()->head, trainer.model()->words->weight));
}

TEST(Parameters, LoadedLaterIntoTheFirstReplicaAreTakenByAll) {
  for (const bool shared : {true, false}) {
    DataParallel trainer([] { return Net(); },
                         {.per_device_batch = 2, .devices = first_devices(3), .share_parameters = shared});
    trainer.step(make_rows(6), net_loss);
    Net other;
    std::stringstream file;
    torch::save(other, file);
    torch::load(trainer.replica(0), file);
    DataParallel fresh([] { return Net(); }, {.per_device_batch = 2, .devices = first_devices(1)});
    const Rows rows = make_rows(6, 1);
    const double expected = net_loss(other, rows).item<double>();
    EXPECT_NEAR(trainer.step(rows, net_loss).loss, expected, 1e-5);
    expect_same_bits(parameters_of(*trainer.replica(0)), parameters_of(*trainer.replica(2)));
  }
}

TEST(Parameters, ThatWereConvertedAreRefused) {
  DataParallel trainer([] { return Net(); }, {.per_device_batch = 2, .devices = first_devices(2)});
  trainer.replica(0)->to(at::kDouble);
  EXPECT_ERROR(trainer.step(make_rows(4), net_loss), InvalidArgument, "Convert the model before it is given");
}

TEST(AModel, ThatCannotBeTrainedIsRefusedByName) {
  struct Half {
    at::Tensor scale;
  };
  EXPECT_ERROR(DataParallel(Half{at::ones({2}).to(at::kHalf)}, {.per_device_batch = 1}), InvalidArgument,
               "parameter scale: it is Half");
  struct Counts {
    at::Tensor counts;
  };
  EXPECT_ERROR(DataParallel(Counts{at::ones({2}, at::kLong)}, {.per_device_batch = 1}), InvalidArgument,
               "no parameter that requires grad");
  int calls = 0;
  EXPECT_ERROR(
      DataParallel([&] { return torch::nn::Linear(3, ++calls); }, {.per_device_batch = 1, .devices = first_devices(2)}),
      InvalidArgument, "replica 0 has the parameter weight Float[1, 3], replica 1 has weight Float[2, 3]");
}

TEST(SparseGradients, AreRefusedByName) {
  DataParallel trainer([] { return torch::nn::Embedding(torch::nn::EmbeddingOptions(5, 4).sparse(true)); },
                       {.per_device_batch = 2, .devices = first_devices(2)});
  EXPECT_ERROR(
      trainer.step(make_rows(4), [](torch::nn::Embedding& net, const Rows& rows) { return net(rows.y).sum(); }),
      InvalidArgument, "the gradient of weight is Sparse");
}

// A generator and a discriminator, each with its own trainer: gradients of one step do not leak into the other's.
TEST(TwoModels, TrainByTurns) {
  const auto train = [](int count) {
    torch::manual_seed(1);
    const DataParallelOptions options = {.learning_rate = schedule::constant(0.1),
                                         .global_batch = 12,
                                         .logical_shards = 6,
                                         .devices = first_devices(count)};
    DataParallel generator([] { return torch::nn::Linear(70, 70); }, options);
    DataParallel judge([] { return torch::nn::Linear(70, 1); }, options);
    for (int step = 0; step < 4; ++step) {
      const Rows rows = make_rows(12, step);
      judge.step(rows, [&](torch::nn::Linear& own, const Rows& part) {
        const at::Tensor fake = generator.model()->forward(part.x).detach();
        return (own(fake) - own(part.x)).mean();
      });
      generator.step(
          rows, [&](torch::nn::Linear& own, const Rows& part) { return -judge.model()->forward(own(part.x)).mean(); });
    }
    auto all = parameters_of(*generator.model());
    for (const at::Tensor& tensor : parameters_of(*judge.model())) all.push_back(tensor);
    return all;
  };
  const auto one = train(1);
  for (const int count : {2, 3}) expect_same_bits(train(count), one);
}

}  // namespace module_test
}  // namespace brigade::training
