#include "cnn.h"

#include <ATen/ATen.h>

#include "brigade/train/dropout.h"
#include "layers.h"

namespace brigade::cli {
namespace {

constexpr std::int64_t kChannels1 = 32;
constexpr std::int64_t kChannels2 = 64;
constexpr std::int64_t kHidden = 128;

class Cnn : public Network {
 public:
  Cnn(ImageShape image, std::int64_t classes, double dropout, KeyChain keys)
      : image_(image),
        conv1_(register_module("conv1", convolution(keys.next(), image.channels, kChannels1))),
        conv2_(register_module("conv2", convolution(keys.next(), kChannels1, kChannels2))),
        hidden_(register_module("hidden",
                                linear(keys.next(), kChannels2 * (image.height / 4) * (image.width / 4), kHidden))),
        drop_(register_module("drop", nn::Dropout(dropout))),
        output_(register_module("output", linear(keys.next(), kHidden, classes))) {}

  torch::Tensor forward(const torch::Tensor& x) override {
    const auto images = x.reshape({x.size(0), image_.channels, image_.height, image_.width});
    const auto halved = at::max_pool2d(at::relu(conv1_(images)), 2);
    const auto quartered = at::max_pool2d(at::relu(conv2_(halved)), 2);
    return output_(drop_(at::relu(hidden_(quartered.flatten(1)))));
  }

 private:
  ImageShape image_;
  torch::nn::Conv2d conv1_, conv2_;
  torch::nn::Linear hidden_;
  nn::Dropout drop_;
  torch::nn::Linear output_;
};

}  // namespace

std::shared_ptr<Network> make_cnn(const DataShape& shape, const NetworkOptions& options) {
  return std::make_shared<Cnn>(image_shape(shape, "cnn", 4), shape.classes, options.dropout, KeyChain(options.key));
}

}  // namespace brigade::cli
