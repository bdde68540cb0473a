#include "resnet.h"

#include <ATen/ATen.h>
#include <torch/nn/modules/container/modulelist.h>

#include <array>

#include "layers.h"

namespace brigade::cli {
namespace {

constexpr std::array<std::int64_t, 4> kChannels = {64, 128, 256, 512};
constexpr int kBlocksInStage = 2;

class BasicBlock : public torch::nn::Module {
 public:
  BasicBlock(std::int64_t inputs, std::int64_t outputs, std::int64_t stride, Norm norm, KeyChain& keys)
      : conv1_(register_module("conv1", plain_convolution(keys.next(), inputs, outputs, 3, stride))),
        norm1_(register_module("norm1", norm_layer(norm, outputs))),
        conv2_(register_module("conv2", plain_convolution(keys.next(), outputs, outputs, 3, 1))),
        norm2_(register_module("norm2", norm_layer(norm, outputs))) {
    const at::NoGradGuard no_grad;
    norm2_->weight.zero_();
    if (stride == 1 && inputs == outputs) return;
    shortcut_ = register_module("shortcut", plain_convolution(keys.next(), inputs, outputs, 1, stride));
    shortcut_norm_ = register_module("shortcut_norm", norm_layer(norm, outputs));
  }

  torch::Tensor forward(const torch::Tensor& x) {
    const auto h = at::relu(norm1_(conv1_(x)));
    const auto past = shortcut_ ? shortcut_norm_(shortcut_(x)) : x;
    return at::relu(norm2_(conv2_(h)) + past);
  }

 private:
  torch::nn::Conv2d conv1_;
  nn::SyncBatchNorm norm1_;
  torch::nn::Conv2d conv2_;
  nn::SyncBatchNorm norm2_;
  torch::nn::Conv2d shortcut_{nullptr};  // where the shape changes
  nn::SyncBatchNorm shortcut_norm_{nullptr};
};

class ResNet : public Network {
 public:
  ResNet(ImageShape image, std::int64_t classes, Norm norm, KeyChain keys)
      : image_(image),
        conv_(register_module("conv", plain_convolution(keys.next(), image.channels, kChannels.front(), 3, 1))),
        norm_(register_module("norm", norm_layer(norm, kChannels.front()))) {
    torch::nn::ModuleList stages;
    std::int64_t inputs = kChannels.front();
    for (const std::int64_t outputs : kChannels) {
      torch::nn::ModuleList stage;
      for (int i = 0; i < kBlocksInStage; ++i) {
        const std::int64_t stride = i == 0 && outputs != kChannels.front() ? 2 : 1;
        blocks_.push_back(std::make_shared<BasicBlock>(inputs, outputs, stride, norm, keys));
        stage->push_back(blocks_.back());
        inputs = outputs;
      }
      stages->push_back(stage);
    }
    register_module("stages", stages);
    output_ = register_module("output", linear(keys.next(), inputs, classes));
  }

  torch::Tensor forward(const torch::Tensor& x) override {
    auto h = x.reshape({x.size(0), image_.channels, image_.height, image_.width});
    h = at::relu(norm_(conv_(h)));
    for (const auto& block : blocks_) h = block->forward(h);
    return output_(h.mean({2, 3}));
  }

 private:
  ImageShape image_;
  torch::nn::Conv2d conv_;
  nn::SyncBatchNorm norm_;
  std::vector<std::shared_ptr<BasicBlock>> blocks_;
  torch::nn::Linear output_{nullptr};
};

}  // namespace

std::shared_ptr<Network> make_resnet18(const DataShape& shape, const NetworkOptions& options) {
  return std::make_shared<ResNet>(image_shape(shape, "resnet18", 8), shape.classes, options.norm,
                                  KeyChain(options.key));
}

}  // namespace brigade::cli
