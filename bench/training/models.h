// The networks of bench_training: as modules, with the names that bench/peers/ddp_step.py gives their parameters, and the
// perceptron as a tree of parameters too.
#pragma once

#include <torch/nn/module.h>
#include <torch/nn/modules/container/modulelist.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>
#include <torch/nn/pimpl.h>

#include <cstdint>
#include <stdexcept>
#include <string_view>

namespace brigade::bench {

// Each says the mean loss of rows x with labels y.

// 784-hidden-10, ReLU.
class MlpImpl : public torch::nn::Module {
 public:
  explicit MlpImpl(std::int64_t hidden);
  torch::Tensor loss(const torch::Tensor& x, const torch::Tensor& y);

 private:
  torch::nn::Linear f1_, f2_;
};
TORCH_MODULE(Mlp);

// The same with weights as [inputs, outputs].
struct MlpTree {
  torch::Tensor w1, b1, w2, b2;

  torch::Tensor loss(const torch::Tensor& x, const torch::Tensor& y) const;
};

// Images of 28 x 28: 3 x 3 convolutions to 32 and 64 channels, each with ReLU and 2 x 2 max pooling; 3136-128-10.
class CnnImpl : public torch::nn::Module {
 public:
  CnnImpl();
  torch::Tensor loss(const torch::Tensor& x, const torch::Tensor& y);

 private:
  torch::nn::Conv2d c1_, c2_;
  torch::nn::Linear f1_, f2_;
};
TORCH_MODULE(Cnn);

// Bytes [rows, 64] and those that follow them: width 128, 4 causal pre-norm layers of 4 heads, GELU, learned positions.
class TransformerImpl : public torch::nn::Module {
 public:
  TransformerImpl();
  torch::Tensor loss(const torch::Tensor& x, const torch::Tensor& y);

 private:
  torch::nn::Embedding embed_;
  torch::Tensor position_;
  torch::nn::ModuleList blocks_;
  torch::nn::LayerNorm norm_;
  torch::nn::Linear head_;
  torch::Tensor mask_;
};
TORCH_MODULE(Transformer);

// f(factory) for the network called `model`, of which `hidden` is the mlp's.
template <class F>
auto with_network(std::string_view model, std::int64_t hidden, F f) {
  if (model == "mlp") return f([hidden] { return Mlp(hidden); });
  if (model == "cnn") return f([] { return Cnn(); });
  if (model == "transformer") return f([] { return Transformer(); });
  throw std::invalid_argument("there is no such model");
}

}  // namespace brigade::bench
