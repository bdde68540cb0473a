// A DataParallel looks for layers of libtorch that do not fit a step in leaves.
#include <gmock/gmock.h>
#include <torch/nn/functional/instancenorm.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/instancenorm.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/rnn.h>

#include "brigade/base/error.h"
#include "brigade/train/batch_norm.h"
#include "brigade/train/dropout.h"
#include "support/errors.h"
#include "train/support.h"

namespace brigade::training {
namespace layer_check_test {

using namespace testing;
using torch::nn::Linear;
using torch::nn::Sequential;

struct Case {
  std::string name;
  std::function<Sequential()> model;
  std::vector<std::string> says;
};

std::ostream& operator<<(std::ostream& stream, const Case& one) { return stream << one.name; }

class ALayer : public ::testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(
    Kinds, ALayer,
    ::testing::Values(
        Case{"batch_norm",
             [] {
               return Sequential(Linear(4, 4), torch::nn::BatchNorm1d(4), torch::nn::BatchNorm2d(4),
                                 torch::nn::BatchNorm3d(4));
             },
             {"\"1\" (torch::nn::BatchNorm1dImpl)", "\"2\" (torch::nn::BatchNorm2dImpl)",
              "\"3\" (torch::nn::BatchNorm3dImpl)", "nn::convert_sync_batchnorm(model)", "nn::GhostBatchNorm"}},
        Case{"dropout",
             [] {
               return Sequential(Linear(4, 4), torch::nn::Dropout(0.5), torch::nn::Dropout2d(0.5),
                                 torch::nn::Dropout3d(0.5), torch::nn::AlphaDropout(0.5),
                                 torch::nn::FeatureAlphaDropout(0.5));
             },
             {"\"1\" (torch::nn::DropoutImpl)", "\"4\" (torch::nn::AlphaDropoutImpl) and 1 more",
              "nn::convert_dropout(model)"}},
        Case{"inside",
             [] {
               Sequential model(Linear(4, 4));
               model->push_back("memory", torch::nn::LSTM(torch::nn::LSTMOptions(4, 4).num_layers(2).dropout(0.5)));
               return model;
             },
             {"\"memory\" (torch::nn::LSTMImpl)", "dropout(0)"}},
        Case{"instance_norm",
             [] {
               return Sequential(Linear(4, 4), torch::nn::InstanceNorm1d(
                                                   torch::nn::InstanceNormOptions(4).track_running_stats(true)));
             },
             {"\"1\" (torch::nn::InstanceNorm1dImpl)", "track_running_stats(false)"}}),
    [](const auto& test) { return test.param.name; });

TEST_P(ALayer, IsRefusedWhereBitsArePromised) {
  const DataParallelOptions options = {.global_batch = 4, .logical_shards = 2, .devices = first_devices(1)};
  for (const std::string& part : GetParam().says)
    EXPECT_ERROR(DataParallel([] { return GetParam().model(); }, options), InvalidArgument, part);
}

TEST_P(ALayer, IsWarnedAboutOnceElsewhere) {
  ::testing::internal::CaptureStderr();
  DataParallel trainer([] { return GetParam().model(); }, {.per_device_batch = 2, .devices = first_devices(2)});
  for (int step = 0; step < 2; ++step) {
    trainer.step(at::ones({4, 4}), [](Sequential& model, const at::Tensor& rows) {
      return model->ptr(0)->as<Linear>()->forward(rows).sum();
    });
  }
  const std::string text = ::testing::internal::GetCapturedStderr();
  for (const std::string& part : GetParam().says) {
    const auto first = text.find(part);
    EXPECT_NE(first, std::string::npos) << text;
    EXPECT_EQ(text.find(part, first + 1), std::string::npos) << text;
  }
  EXPECT_NE(text.find("layer_check_test.cpp"), std::string::npos) << text;
}

TEST(LayersThatFit, AreTakenSilently) {
  ::testing::internal::CaptureStderr();
  const auto model = [] {
    return Sequential(Linear(4, 4), nn::SyncBatchNorm(4), nn::GhostBatchNorm(4), nn::Dropout(0.5),
                      torch::nn::Dropout(0.0), torch::nn::InstanceNorm1d(4));
  };
  DataParallel(model, {.global_batch = 4, .logical_shards = 2, .devices = first_devices(2)});
  DataParallel(model, {.per_device_batch = 2, .devices = first_devices(2)});
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
}

}  // namespace layer_check_test
}  // namespace brigade::training
