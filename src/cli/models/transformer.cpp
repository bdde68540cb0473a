#include "transformer.h"

#include <ATen/ATen.h>
#include <torch/nn/modules/container/modulelist.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/normalization.h>

#include <cmath>

#include "brigade/random/distributions.h"
#include "brigade/train/dropout.h"
#include "layers.h"

namespace brigade::cli {
namespace {

constexpr std::int64_t kWidth = 128;
constexpr std::int64_t kHeads = 4;
constexpr std::int64_t kLayers = 4;
constexpr double kDeviation = 0.02;  // of all weights but those that add to the stream

torch::nn::LayerNorm layer_norm() { return torch::nn::LayerNorm(torch::nn::LayerNormOptions({kWidth})); }

// Each layer adds to the stream twice; so scaled, its variance does not grow with their number.
torch::nn::Linear adding_linear(random::Key key, std::int64_t inputs) {
  return linear_of_deviation(key, inputs, kWidth, kDeviation / std::sqrt(2.0 * kLayers));
}

class Block : public torch::nn::Module {
 public:
  Block(double dropout, KeyChain& keys)
      : norm1_(register_module("norm1", layer_norm())),
        qkv_(register_module("qkv", linear_of_deviation(keys.next(), kWidth, 3 * kWidth, kDeviation))),
        attended_(register_module("attended", adding_linear(keys.next(), kWidth))),
        norm2_(register_module("norm2", layer_norm())),
        up_(register_module("up", linear_of_deviation(keys.next(), kWidth, 4 * kWidth, kDeviation))),
        down_(register_module("down", adding_linear(keys.next(), 4 * kWidth))),
        drop_(register_module("drop", nn::Dropout(dropout))) {}

  // The stream stays in full precision; where the products are in half, the sums promote.
  torch::Tensor forward(const torch::Tensor& stream, const torch::Tensor& mask) {
    const auto h = stream + drop_(attended_(attention(norm1_(stream), mask)));
    return h + drop_(down_(at::gelu(up_(norm2_(h)))));
  }

 private:
  torch::Tensor attention(const torch::Tensor& x, const torch::Tensor& mask) {
    const std::int64_t rows = x.size(0);
    const std::int64_t length = x.size(1);
    const auto qkv = qkv_(x).view({rows, length, 3, kHeads, kWidth / kHeads}).permute({2, 0, 3, 1, 4}).unbind(0);
    const auto scores = at::matmul(qkv[0], qkv[1].transpose(-1, -2)) / std::sqrt(kWidth / kHeads) + mask;
    return at::matmul(scores.softmax(-1), qkv[2]).transpose(1, 2).reshape({rows, length, kWidth});
  }

  torch::nn::LayerNorm norm1_;
  torch::nn::Linear qkv_, attended_;
  torch::nn::LayerNorm norm2_;
  torch::nn::Linear up_, down_;
  nn::Dropout drop_;
};

class Transformer : public Network {
 public:
  Transformer(std::int64_t longest, std::int64_t vocabulary, double dropout, KeyChain keys)
      : embed_(register_module("embed", torch::nn::Embedding(vocabulary, kWidth))),
        position_(register_parameter("position", random::normal(keys.next(), {longest, kWidth}) * kDeviation)),
        drop_(register_module("drop", nn::Dropout(dropout))) {
    const at::NoGradGuard no_grad;
    embed_->weight.copy_(random::normal(keys.next(), {vocabulary, kWidth}) * kDeviation);
    torch::nn::ModuleList list;
    for (std::int64_t layer = 0; layer < kLayers; ++layer) {
      blocks_.push_back(std::make_shared<Block>(dropout, keys));
      list->push_back(blocks_.back());
    }
    register_module("blocks", list);
    norm_ = register_module("norm", layer_norm());
    head_ = register_module("head", torch::nn::Linear(torch::nn::LinearOptions(kWidth, vocabulary).bias(false)));
    head_->weight.copy_(random::normal(keys.next(), {vocabulary, kWidth}) * kDeviation);
    // A byte sees those up to itself.
    mask_ = at::full({longest, longest}, -1e9).triu(1);
  }

  torch::Tensor forward(const torch::Tensor& bytes) override {
    const std::int64_t length = bytes.size(1);
    const auto mask = mask_.slice(0, 0, length).slice(1, 0, length);
    auto stream = drop_(embed_(bytes.to(at::kLong)) + position_.slice(0, 0, length));
    for (const auto& block : blocks_) stream = block->forward(stream, mask);
    return head_(norm_(stream));
  }

 private:
  torch::nn::Embedding embed_;
  torch::Tensor position_;
  nn::Dropout drop_;
  std::vector<std::shared_ptr<Block>> blocks_;
  torch::nn::LayerNorm norm_{nullptr};
  torch::nn::Linear head_{nullptr};
  torch::Tensor mask_;
};

}  // namespace

std::shared_ptr<Network> make_transformer(const DataShape& shape, const NetworkOptions& options) {
  return std::make_shared<Transformer>(shape.row.at(0), shape.classes, options.dropout, KeyChain(options.key));
}

}  // namespace brigade::cli
