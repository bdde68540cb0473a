#include <torch/optim/optimizer.h>

#include <algorithm>

#include "brigade/base/error.h"
#include "gradient_measure.h"
#include "update.h"

namespace brigade::training {
namespace {

class TorchUpdate : public Update {
 public:
  TorchUpdate(const Layout& layout, const Flat& gradients, std::unique_ptr<torch::optim::Optimizer> optimizer,
              std::vector<at::Tensor> parameters)
      : layout_(layout), gradients_(gradients), optimizer_(std::move(optimizer)), parameters_(std::move(parameters)) {
    require_known();
  }

  void apply(const Share& share, const Decision& decision) override {
    prepare(share.blocks, decision);
    share.meet();
    if (share.device != 0) return;
    step(decision);
    for (const Part& part : layout_.parts({.begin = 0, .end = layout_.blocks()})) share.written(part);
  }

  // Its state is its own business: tensors, numbers or graphs, of any kind.
  std::vector<NamedFlat> buffers() const override { return {}; }

  BlockRange written(std::size_t device, BlockRange /*blocks*/) const override {
    return {.begin = 0, .end = device == 0 ? layout_.blocks() : 0};
  }

  void conclude(const Decision& /*decision*/) override {}

  std::vector<NamedTensor> state() override {
    throw InvalidArgument(
        "a checkpoint cannot hold what an optimizer of libtorch remembers: it has no names for it, and its own files "
        "are made "
        "to run code when they are read. Train with .optimizer = optim::sgd(...), adam, adamw, lamb or another of "
        "ours, whose "
        "steps are torch.optim's");
  }

  std::string describe() const override { return "an optimizer of libtorch"; }

 private:
  // What it does not update would stay as it is, in silence.
  void require_known() const {
    for (const auto& group : optimizer_->param_groups()) {
      for (const at::Tensor& known : group.params()) {
        if (std::any_of(parameters_.begin(), parameters_.end(),
                        [&](const at::Tensor& own) { return own.is_same(known); }))
          continue;
        throw InvalidArgument(
            ".torch_optimizer holds a tensor that is no parameter of this model: make it of the parameters that the "
            "function "
            "is given");
      }
    }
  }

  // The averaged and clipped gradient, in place.
  void prepare(BlockRange blocks, const Decision& decision) const {
    const at::NoGradGuard no_grad;
    for (const Part& part : layout_.parts(blocks)) {
      with_elements(layout_, gradients_, part, [&](auto elements) {
        using T = typename decltype(elements)::element_type;
        at::Tensor gradient = at::from_blob(elements.data(), {static_cast<std::int64_t>(elements.size())},
                                            at::TensorOptions(c10::CppTypeToScalarType<T>::value));
        gradient.div_(decision.divisor);
        if (decision.clip_factor != 1) gradient.mul_(decision.clip_factor);
        if (std::isfinite(decision.clip_value)) gradient.clamp_(-decision.clip_value, decision.clip_value);
      });
    }
  }

  void step(const Decision& decision) {
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      parameters_[i].mutable_grad() = decision.used[i] ? gradients_.view(i) : at::Tensor();
    }
    for (auto& group : optimizer_->param_groups()) group.options().set_lr(decision.learning_rate);
    optimizer_->step();
    for (at::Tensor& parameter : parameters_) parameter.mutable_grad().reset();
  }

  const Layout& layout_;
  const Flat& gradients_;
  std::unique_ptr<torch::optim::Optimizer> optimizer_;
  std::vector<at::Tensor> parameters_;
};

}  // namespace

std::unique_ptr<Update> update_by_torch(const Layout& layout, const Flat& gradients,
                                        std::unique_ptr<torch::optim::Optimizer> optimizer,
                                        std::vector<at::Tensor> parameters) {
  return std::make_unique<TorchUpdate>(layout, gradients, std::move(optimizer), std::move(parameters));
}

}  // namespace brigade::training
