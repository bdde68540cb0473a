#include "gradient_taps.h"

#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

namespace brigade::training {

using torch::autograd::variable_list;

class GradientTaps::Tap : public torch::autograd::FunctionPostHook {
 public:
  Tap(GradientTaps& taps, std::size_t parameter) : taps_(taps), parameter_(parameter) {}

  variable_list operator()(const variable_list& outputs, const variable_list& /*inputs*/) override {
    at::Tensor& gradient = taps_.parameters_[parameter_].mutable_grad();
    if (taps_.sink_ != nullptr && gradient.defined()) (*taps_.sink_)(parameter_, std::exchange(gradient, at::Tensor()));
    return outputs;
  }

 private:
  GradientTaps& taps_;
  std::size_t parameter_;
};

struct GradientTaps::Hooked {
  std::shared_ptr<torch::autograd::Node> accumulator;  // a parameter does not keep its own alive
  std::uintptr_t key;
};

GradientTaps::GradientTaps(std::vector<at::Tensor> parameters) : parameters_(std::move(parameters)) {
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    auto accumulator = torch::autograd::impl::grad_accumulator(parameters_[i]);
    const std::uintptr_t key = accumulator->add_post_hook(std::make_unique<Tap>(*this, i));
    hooked_.push_back({std::move(accumulator), key});
  }
}

GradientTaps::~GradientTaps() {
  for (const Hooked& one : hooked_) one.accumulator->del_post_hook(one.key);
}

GradientTaps::Listening::Listening(GradientTaps& taps, Sink sink) : taps_(taps), sink_(sink) {
  for (at::Tensor& parameter : taps.parameters_) parameter.mutable_grad().reset();
  taps.sink_ = &sink_;
}

}  // namespace brigade::training
