#include "mlp.h"

#include <ATen/ATen.h>

#include "layers.h"

namespace brigade::cli {
namespace {

constexpr std::int64_t kHidden = 128;

class Mlp : public Network {
 public:
  Mlp(const DataShape& shape, KeyChain keys)
      : hidden_(register_module("hidden", linear(keys.next(), shape.numbers(), kHidden))),
        output_(register_module("output", linear(keys.next(), kHidden, shape.classes))) {}

  torch::Tensor forward(const torch::Tensor& x) override { return output_(at::relu(hidden_(x.flatten(1)))); }

 private:
  torch::nn::Linear hidden_;
  torch::nn::Linear output_;
};

}  // namespace

std::shared_ptr<Network> make_mlp(const DataShape& shape, const NetworkOptions& options) {
  return std::make_shared<Mlp>(shape, KeyChain(options.key));
}

}  // namespace brigade::cli
