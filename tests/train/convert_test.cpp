// Converters of layers: what they replace, and what they refuse because a class would go on calling the old module.
#include <gmock/gmock.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/moduledict.h>
#include <torch/nn/modules/container/modulelist.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/linear.h>

#include "brigade/base/error.h"
#include "brigade/train/batch_norm.h"
#include "brigade/train/dropout.h"
#include "brigade/train/leaf.h"
#include "support/errors.h"
#include "train/support.h"

namespace brigade::training {
namespace convert_test {

using namespace testing;
using torch::nn::ModuleDict;
using torch::nn::ModuleList;
using torch::nn::Sequential;

// Containers in containers, all in members of a class.
struct DeepImpl : torch::nn::Module {
  DeepImpl() {
    blocks->push_back(Sequential(torch::nn::Linear(6, 8), torch::nn::BatchNorm1d(8), torch::nn::Dropout(0.5)));
    blocks->push_back(torch::nn::Dropout2d(0.25));
    register_module("blocks", blocks);
    heads->update(
        {{"a", torch::nn::BatchNorm2d(torch::nn::BatchNorm2dOptions(8).eps(0.1).momentum(c10::nullopt)).ptr()},
         {"b", torch::nn::AlphaDropout(0.125).ptr()}});
    register_module("heads", heads);
  }
  at::Tensor forward(const at::Tensor& x) {
    const at::Tensor y = blocks->ptr(0)->as<Sequential>()->forward(x);
    return blocks->ptr(1)->as<nn::Dropout>()->forward(y);
  }
  ModuleList blocks;
  ModuleDict heads;
};
TORCH_MODULE(Deep);

TEST(ConvertDropout, ReplacesElementsOfContainersAtAnyDepth) {
  Deep model = nn::convert_dropout(Deep());
  const auto modules = model->named_modules();
  const auto dropout = [&](const char* name) { return modules[name]->as<nn::Dropout>(); };
  ASSERT_NE(dropout("blocks.0.2"), nullptr);
  EXPECT_EQ(dropout("blocks.0.2")->p(), 0.5);
  EXPECT_EQ(dropout("blocks.1")->p(), 0.25);
  EXPECT_EQ(dropout("blocks.1")->options().of, nn::DropoutOptions::Of::kFeatures);
  EXPECT_EQ(dropout("heads.b")->p(), 0.125);
  EXPECT_EQ(dropout("heads.b")->options().form, nn::DropoutOptions::Form::kAlpha);
  // What is called is what is registered.
  EXPECT_EQ(model->blocks->ptr(1).get(), modules["blocks.1"].get());
  EXPECT_EQ(model->heads["b"].get(), modules["heads.b"].get());
  const LeafScope leaf(random::key(1), 0, 0);
  const at::Tensor y = model->forward(at::ones({64, 6}));
  EXPECT_GT((y == 0).sum().item<std::int64_t>(), 0);
  EXPECT_TRUE(same_bits(at::Tensor(y).detach(), [&] {
    const LeafScope again(random::key(1), 0, 0);
    return model->forward(at::ones({64, 6}));
  }()));
}

TEST(ConvertSyncBatchNorm, KeepsParametersAndRunningStatistics) {
  Deep model;
  auto* const old = model->blocks->ptr(0)->as<Sequential>()->ptr(1)->as<torch::nn::BatchNorm1d>();
  (*old).forward(at::rand({9, 8}));
  old->weight.requires_grad_(false);
  const at::Tensor weight = old->weight, bias = old->bias, mean = old->running_mean, count = old->num_batches_tracked;
  model->heads["a"]->eval();
  nn::convert_sync_batchnorm(*model, {.group = 3});
  auto* const first = model->named_modules()["blocks.0.1"]->as<nn::SyncBatchNorm>();
  ASSERT_NE(first, nullptr);
  EXPECT_TRUE(first->weight.is_same(weight));
  EXPECT_FALSE(first->weight.requires_grad());
  EXPECT_TRUE(first->bias.is_same(bias));
  EXPECT_TRUE(first->running_mean.is_same(mean));
  EXPECT_TRUE(first->num_batches_tracked.is_same(count));
  EXPECT_EQ(count.item<std::int64_t>(), 1);
  EXPECT_TRUE(first->is_training());
  EXPECT_EQ(first->options().group, 3);
  const auto* const second = model->heads["a"]->as<nn::SyncBatchNorm>();
  EXPECT_EQ(second->options().eps, 0.1);
  EXPECT_FALSE(second->options().momentum.has_value());
  EXPECT_FALSE(second->is_training());
  // In the place of what the Sequential calls.
  model->blocks->ptr(0)->as<Sequential>()->eval();
  const at::Tensor x = at::rand({3, 6});
  const at::Tensor expected =
      at::batch_norm(model->blocks->ptr(0)->as<Sequential>()->ptr(0)->as<torch::nn::Linear>()->forward(x), weight, bias,
                     mean, first->running_var, false, 0, 1e-5, false);
  EXPECT_TRUE(at::allclose(model->blocks->ptr(0)->as<Sequential>()->forward(x), expected));
}

TEST(ConvertSyncBatchNorm, ReplacesAModuleThatStandsTwiceByOne) {
  torch::nn::BatchNorm1d twice(4);
  Sequential model;
  model->push_back(twice);
  model->push_back(torch::nn::Linear(4, 4));
  model->push_back(twice);
  twice = nullptr;
  nn::convert_sync_batchnorm(*model);
  ASSERT_NE(model->ptr(0)->as<nn::SyncBatchNorm>(), nullptr);
  EXPECT_EQ(model->ptr(0), model->ptr(2));
}

struct OwnImpl : torch::nn::Module {
  OwnImpl() {
    drop = register_module("drop", torch::nn::Dropout(0.5));
    norm = register_module("norm", torch::nn::BatchNorm1d(6));
    idle = register_module("idle", torch::nn::Dropout(0.0));
    stack = register_module("stack", Sequential(torch::nn::Dropout(0.5), torch::nn::BatchNorm1d(6)));
  }
  torch::nn::Dropout drop{nullptr}, idle{nullptr};
  torch::nn::BatchNorm1d norm{nullptr};
  Sequential stack{nullptr};
};
TORCH_MODULE(Own);

// With replace_module alone, `drop` would still be the old one, under the name of the new.
TEST(Converters, RefuseMembersOfAClassAndReplaceNothingThen) {
  Own model;
  EXPECT_ERROR(nn::convert_dropout(model), InvalidArgument,
               "\"drop\" (torch::nn::DropoutImpl) is a member of brigade::training::convert_test::OwnImpl");
  EXPECT_ERROR(nn::convert_dropout(model), InvalidArgument, "as nn::Dropout");
  EXPECT_ERROR(nn::convert_sync_batchnorm(model), InvalidArgument, "\"norm\" (torch::nn::BatchNorm1dImpl)");
  EXPECT_ERROR(nn::convert_sync_batchnorm(model), InvalidArgument, "as nn::SyncBatchNorm");
  EXPECT_NE(model->stack->ptr(0)->as<torch::nn::Dropout>(), nullptr);
  EXPECT_NE(model->stack->ptr(1)->as<torch::nn::BatchNorm1d>(), nullptr);
}

TEST(Converters, RefuseAnElementThatSomebodyElseHoldsToo) {
  const torch::nn::Dropout kept(0.5);
  Sequential model(torch::nn::Linear(3, 3));
  model->push_back(kept);
  EXPECT_ERROR(nn::convert_dropout(*model), InvalidArgument,
               "\"1\" (torch::nn::DropoutImpl) is held by another handle");
}

TEST(Converters, RefuseTheModelItself) {
  EXPECT_ERROR(nn::convert_dropout(torch::nn::Dropout(0.5)), InvalidArgument,
               "the model itself is a torch::nn::Dropout");
  EXPECT_ERROR(nn::convert_sync_batchnorm(torch::nn::BatchNorm2d(3)), InvalidArgument, "the model itself is a");
}

struct OwnDropoutImpl : torch::nn::DropoutImpl {
  using DropoutImpl::DropoutImpl;
  at::Tensor forward(const at::Tensor& x) { return -x; }
};

TEST(Converters, LeaveAloneClassesDerivedFromLibtorchs) {
  Sequential model;
  model->push_back(std::make_shared<OwnDropoutImpl>(0.5));
  nn::convert_dropout(*model);
  EXPECT_TRUE(at::equal(model->forward(at::ones({2, 3})), -at::ones({2, 3})));
}

TEST(Converters, LeaveAloneWhatIsConvertedOrDrawsNothing) {
  Sequential model(nn::Dropout(0.5), nn::SyncBatchNorm(3), torch::nn::Dropout(0.0));
  const auto before = model->modules();
  nn::convert_dropout(*model);
  nn::convert_sync_batchnorm(*model);
  EXPECT_EQ(model->modules(), before);
}

}  // namespace convert_test
}  // namespace brigade::training
