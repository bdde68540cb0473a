#include "brigade/transform/reduced_grad.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/utils.h>
#include <torch/csrc/autograd/variable.h>

#include <cstdint>

#include "brigade/base/error.h"

namespace brigade::detail {
namespace {

using torch::autograd::variable_list;

// The node through which all gradients of one variable come, added up: a hook on a leaf is not called by
// torch::autograd::grad(). It keeps the gradient, so that its memory can be reduced in place.
class Tap : public torch::autograd::Node {
 public:
  // Ready nodes run in descending order of their numbers; with the highest, a gradient leaves as soon as it is complete.
  Tap(const at::Tensor& variable, std::weak_ptr<lax::detail::GradientReduction> reduction, std::size_t number)
      : Node(/*sequence_nr=*/UINT64_MAX, torch::autograd::collect_next_edges(variable)),
        reduction_(std::move(reduction)),
        number_(number) {}

  std::string name() const override { return "value_and_grad"; }

 protected:
  variable_list apply(variable_list&& gradients) override {
    const auto reduction = reduction_.lock();
    if (!reduction) {
      throw Error(
          "backward through the graph of a value_and_grad with a reduction, which has ended: use the gradients that it "
          "returned");
    }
    if (gradients[0].defined()) reduction->arrived(number_, std::move(gradients[0]));
    return {at::Tensor()};
  }

 private:
  std::weak_ptr<lax::detail::GradientReduction> reduction_;
  std::size_t number_;
};

}  // namespace

ReducedGradients::ReducedGradients(const Variables& variables, const lax::Reduction& how)
    : variables_(variables.tensors) {
  if (variables.create_graph) {
    throw InvalidArgument(
        "value_and_grad with a reduction has a first derivative only, and here its result would be differentiated: an "
        "argument requires grad, or somebody outside differentiates. Detach the arguments, or use "
        "lax::pmean(grad(f)(...)), which has derivatives of any order",
        {.axis = AxisNames(how.axes).text(), .site = how.site});
  }
  reduction_ = std::make_shared<lax::detail::GradientReduction>(how, variables_, variables.path_of);
}

std::vector<at::Tensor> ReducedGradients::inputs() const {
  std::vector<at::Tensor> tapped;
  tapped.reserve(variables_.size());
  for (std::size_t number = 0; number < variables_.size(); ++number) {
    const auto node =
        std::shared_ptr<Tap>(new Tap(variables_[number], reduction_, number), torch::autograd::deleteNode);
    at::Tensor& own = tapped.emplace_back(variables_[number].detach());
    torch::autograd::impl::set_gradient_edge(own, {node, node->add_input_metadata(own)});
  }
  return tapped;
}

std::vector<at::Tensor> ReducedGradients::of(at::Tensor& loss) const {
  require_scalar(loss);
  reduction_->set_loss(loss);
  if (loss.requires_grad() && !variables_.empty()) {
    torch::autograd::grad({loss}, variables_, {}, /*retain_graph=*/false, /*create_graph=*/false,
                          /*allow_unused=*/true);
  }
  auto [reduced, gradients] = reduction_->finish();
  loss = std::move(reduced);
  return gradients;
}

}  // namespace brigade::detail
