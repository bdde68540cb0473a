#include "training/models.h"

#include <ATen/ATen.h>

#include <cmath>

namespace brigade::bench {
namespace {

constexpr std::int64_t kWidth = 128;
constexpr std::int64_t kHeads = 4;
constexpr std::int64_t kLayers = 4;
constexpr std::int64_t kVocabulary = 256;
constexpr std::int64_t kLength = 64;

torch::nn::Conv2d convolution(std::int64_t from, std::int64_t to) {
  return torch::nn::Conv2d(torch::nn::Conv2dOptions(from, to, 3).padding(1));
}

torch::nn::LayerNorm layer_norm() { return torch::nn::LayerNorm(torch::nn::LayerNormOptions({kWidth})); }

class BlockImpl : public torch::nn::Module {
 public:
  BlockImpl()
      : n1_(register_module("n1", layer_norm())),
        n2_(register_module("n2", layer_norm())),
        qkv_(register_module("qkv", torch::nn::Linear(kWidth, 3 * kWidth))),
        out_(register_module("out", torch::nn::Linear(kWidth, kWidth))),
        up_(register_module("up", torch::nn::Linear(kWidth, 4 * kWidth))),
        down_(register_module("down", torch::nn::Linear(4 * kWidth, kWidth))) {}

  torch::Tensor forward(const torch::Tensor& x, const torch::Tensor& mask) {
    const std::int64_t rows = x.size(0);
    const auto qkv = qkv_(n1_(x)).view({rows, kLength, 3, kHeads, kWidth / kHeads}).permute({2, 0, 3, 1, 4}).unbind(0);
    const auto scores = at::matmul(qkv[0], qkv[1].transpose(-1, -2)) / std::sqrt(kWidth / kHeads) + mask;
    const auto attention = at::matmul(scores.softmax(-1), qkv[2]).transpose(1, 2).reshape({rows, kLength, kWidth});
    const auto h = x + out_(attention);
    return h + down_(at::gelu(up_(n2_(h))));
  }

 private:
  torch::nn::LayerNorm n1_, n2_;
  torch::nn::Linear qkv_, out_, up_, down_;
};
TORCH_MODULE(Block);

}  // namespace

MlpImpl::MlpImpl(std::int64_t hidden)
    : f1_(register_module("f1", torch::nn::Linear(784, hidden))),
      f2_(register_module("f2", torch::nn::Linear(hidden, 10))) {}

torch::Tensor MlpImpl::loss(const torch::Tensor& x, const torch::Tensor& y) {
  return at::cross_entropy_loss(f2_(at::relu(f1_(x))), y);
}

torch::Tensor MlpTree::loss(const torch::Tensor& x, const torch::Tensor& y) const {
  return at::cross_entropy_loss(at::addmm(b2, at::relu(at::addmm(b1, x, w1)), w2), y);
}

CnnImpl::CnnImpl()
    : c1_(register_module("c1", convolution(1, 32))),
      c2_(register_module("c2", convolution(32, 64))),
      f1_(register_module("f1", torch::nn::Linear(3136, 128))),
      f2_(register_module("f2", torch::nn::Linear(128, 10))) {}

torch::Tensor CnnImpl::loss(const torch::Tensor& x, const torch::Tensor& y) {
  auto h = at::max_pool2d(at::relu(c1_(x)), 2);
  h = at::max_pool2d(at::relu(c2_(h)), 2);
  return at::cross_entropy_loss(f2_(at::relu(f1_(h.flatten(1)))), y);
}

TransformerImpl::TransformerImpl()
    : embed_(register_module("embed", torch::nn::Embedding(kVocabulary, kWidth))),
      position_(register_parameter("position", at::zeros({kLength, kWidth}))),
      blocks_(register_module("blocks", torch::nn::ModuleList())),
      norm_(register_module("norm", layer_norm())),
      head_(register_module("head", torch::nn::Linear(torch::nn::LinearOptions(kWidth, kVocabulary).bias(false)))),
      mask_(register_buffer("mask", at::full({kLength, kLength}, -1e9).triu(1))) {
  for (std::int64_t layer = 0; layer < kLayers; ++layer) blocks_->push_back(Block());
}

torch::Tensor TransformerImpl::loss(const torch::Tensor& x, const torch::Tensor& y) {
  auto h = embed_(x) + position_;
  for (const auto& block : *blocks_) h = block->as<Block>()->forward(h, mask_);
  return at::cross_entropy_loss(head_(norm_(h)).flatten(0, 1), y.flatten());
}

}  // namespace brigade::bench
