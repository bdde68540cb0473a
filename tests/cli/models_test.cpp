// The networks themselves: what their parameters are called and start from, and what they compute.
#include "models/models.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "brigade/base/error.h"
#include "brigade/random/distributions.h"
#include "support/errors.h"

namespace brigade::cli {
namespace models_test {

const DataShape kImages = {.row = {28, 28}, .classes = 10};
const DataShape kColours = {.row = {3, 32, 32}, .classes = 10};
const DataShape kText = {.row = {64}, .classes = 256};

std::shared_ptr<Network> make(const std::string& name, const DataShape& shape, std::int64_t seed = 0) {
  return model_named(name).make(shape, {.key = random::key(seed)});
}

std::map<std::string, torch::Tensor> parameters_of(const Network& network) {
  std::map<std::string, torch::Tensor> parameters;
  for (const auto& item : network.named_parameters()) parameters[item.key()] = item.value().detach();
  return parameters;
}

std::int64_t count(const Network& network) {
  std::int64_t sum = 0;
  for (const auto& [name, parameter] : parameters_of(network)) sum += parameter.numel();
  return sum;
}

TEST(Models, HaveAsManyParametersAsTheirShapesSay) {
  EXPECT_EQ(count(*make("mlp", kImages)), 784 * 128 + 128 + 128 * 10 + 10);
  EXPECT_EQ(count(*make("mlp", {.row = {4}, .classes = 3})), 4 * 128 + 128 + 128 * 3 + 3);
  EXPECT_EQ(count(*make("cnn", kImages)), 9 * 32 + 32 + 9 * 32 * 64 + 64 + 3136 * 128 + 128 + 128 * 10 + 10);
  EXPECT_EQ(count(*make("resnet18", kColours)), 11'173'962);  // as ResNet-18 for CIFAR-10 has everywhere
  const std::int64_t block = 2 * 2 * 128 + (128 + 1) * 3 * 128 + (128 + 1) * 128 + (128 + 1) * 512 + (512 + 1) * 128;
  EXPECT_EQ(count(*make("transformer", kText)), 256 * 128 + 64 * 128 + 4 * block + 2 * 128 + 128 * 256);
}

TEST(Models, NameParametersAfterTheirLayers) {
  const auto mlp = parameters_of(*make("mlp", kImages));
  EXPECT_EQ(mlp.at("hidden.weight").sizes(), (std::vector<std::int64_t>{128, 784}));
  EXPECT_TRUE(mlp.contains("output.bias"));
  EXPECT_TRUE(parameters_of(*make("cnn", kImages)).contains("conv2.weight"));
  const auto resnet = parameters_of(*make("resnet18", kColours));
  EXPECT_EQ(resnet.at("stages.3.1.conv2.weight").sizes(), (std::vector<std::int64_t>{512, 512, 3, 3}));
  EXPECT_TRUE(resnet.contains("stages.1.0.shortcut.weight"));
  EXPECT_FALSE(resnet.contains("stages.0.0.shortcut.weight"));
  const auto transformer = parameters_of(*make("transformer", kText));
  EXPECT_EQ(transformer.at("position").sizes(), (std::vector<std::int64_t>{64, 128}));
  EXPECT_TRUE(transformer.contains("blocks.3.qkv.weight"));
}

TEST(Models, StartFromTheKeyAlone) {
  for (const Model& model : models()) {
    SCOPED_TRACE(model.name);
    const DataShape& shape = model.task == Task::kNextByte ? kText : kColours;
    at::manual_seed(1);
    const auto first = parameters_of(*make(model.name, shape, 7));
    at::manual_seed(2);
    const auto second = parameters_of(*make(model.name, shape, 7));
    const auto other = parameters_of(*make(model.name, shape, 8));
    for (const auto& [name, parameter] : first) {
      EXPECT_TRUE(at::equal(parameter, second.at(name))) << name;
      // Biases, scales and shifts are the same for every key.
      EXPECT_EQ(at::equal(parameter, other.at(name)), parameter.dim() == 1) << name;
    }
  }
}

TEST(Models, DrawWeightsThatKeepTheVarianceThroughRelus) {
  const auto mlp = parameters_of(*make("mlp", kImages));
  EXPECT_NEAR(mlp.at("hidden.weight").std().item<double>(), std::sqrt(2.0 / 784), 0.0005);
  const auto cnn = parameters_of(*make("cnn", kImages));
  EXPECT_NEAR(cnn.at("conv2.weight").std().item<double>(), std::sqrt(2.0 / (9 * 32)), 0.002);
  EXPECT_EQ(cnn.at("conv2.bias").abs().max().item<double>(), 0);
  const auto transformer = parameters_of(*make("transformer", kText));
  EXPECT_NEAR(transformer.at("blocks.0.up.weight").std().item<double>(), 0.02, 0.0005);
  EXPECT_NEAR(transformer.at("blocks.0.down.weight").std().item<double>(), 0.02 / std::sqrt(8.0), 0.0002);
}

TEST(Models, TheMlpIsTwoProductsAroundARelu) {
  const auto network = make("mlp", kImages);
  auto p = parameters_of(*network);
  const auto x = random::normal(random::key(1), {5, 28, 28});
  const auto hidden = (x.reshape({5, 784}).matmul(p["hidden.weight"].t()) + p["hidden.bias"]).clamp_min(0);
  const auto expected = hidden.matmul(p["output.weight"].t()) + p["output.bias"];
  EXPECT_TRUE(at::allclose(network->forward(x), expected, 1e-5, 1e-5));
}

TEST(Models, ScoresAreOneForEachClassOfARowOrAByte) {
  const at::NoGradGuard no_grad;
  for (const std::string name : {"mlp", "cnn", "resnet18"}) {
    EXPECT_EQ(make(name, kColours)->forward(at::ones({2, 3, 32, 32})).sizes(), (std::vector<std::int64_t>{2, 10}));
  }
  EXPECT_EQ(make("transformer", kText)->forward(at::ones({2, 64}, at::kByte)).sizes(),
            (std::vector<std::int64_t>{2, 64, 256}));
  // A language model takes shorter rows, too.
  EXPECT_EQ(make("transformer", kText)->forward(at::ones({2, 9}, at::kByte)).size(1), 9);
}

TEST(Models, TheTransformerSeesNoByteThatIsStillToCome) {
  const at::NoGradGuard no_grad;
  const auto network = make("transformer", kText);
  const auto bytes = random::randint(random::key(2), {1, 64}, 0, 256).to(at::kByte);
  auto changed = bytes.clone();
  changed[0][40] = bytes[0][40].item<std::int64_t>() ^ 1;
  const auto before = network->forward(bytes);
  const auto after = network->forward(changed);
  EXPECT_TRUE(at::equal(before.slice(1, 0, 40), after.slice(1, 0, 40)));
  for (std::int64_t later = 40; later < 64; ++later) {
    EXPECT_FALSE(at::equal(before.select(1, later), after.select(1, later))) << later;
  }
}

TEST(Models, BlocksOfTheResnetStartAsTheIdentity) {
  const at::NoGradGuard no_grad;
  const auto network = make("resnet18", kColours);
  auto p = parameters_of(*network);
  const auto x = random::normal(random::key(3), {4, 3, 32, 32});
  const auto before = network->forward(x);
  // While the last scale of a block is 0, what its second convolution computes does not reach the scores.
  p["stages.2.1.conv2.weight"].mul_(3).add_(1);
  EXPECT_TRUE(at::equal(network->forward(x), before));
  p["stages.2.1.norm2.weight"].fill_(1);
  EXPECT_FALSE(at::equal(network->forward(x), before));
}

TEST(Models, RowsThatAreNoImagesAreRefusedWithWhatWouldDo) {
  const DataShape numbers = {.row = {4}, .classes = 3};
  EXPECT_ERROR(make("cnn", numbers), InvalidArgument,
               "cnn is a network for images, and the rows of this data are 4: try --model mlp");
  const DataShape low = {.row = {7, 28}, .classes = 2};
  EXPECT_ERROR(make("resnet18", low), InvalidArgument, "resnet18 takes images of 8 x 8 and more, and these are 7 x 28");
}

}  // namespace models_test
}  // namespace brigade::cli
