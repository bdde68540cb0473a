#include "linear_node.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/utils.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <string>

namespace brigade::lax::detail {
namespace {

thread_local std::uint64_t recorded = 0;

class LinearNode : public torch::autograd::Node {
 public:
  LinearNode(torch::autograd::edge_list inputs, std::string name, Transpose transpose)
      : Node(std::move(inputs)), name_(std::move(name)), transpose_(std::move(transpose)) {}

  std::string name() const override { return name_; }

 protected:
  torch::autograd::variable_list apply(torch::autograd::variable_list&& cotangents) override {
    for (std::size_t i = 0; i < cotangents.size(); ++i) {
      if (!cotangents[i].defined()) cotangents[i] = input_metadata(i).zeros_like();
    }
    return transpose_(std::move(cotangents));
  }

 private:
  std::string name_;
  Transpose transpose_;
};

}  // namespace

bool needs_recording(const std::vector<at::Tensor>& inputs) {
  return at::GradMode::is_enabled() &&
         std::any_of(inputs.begin(), inputs.end(), [](const at::Tensor& t) { return t.requires_grad(); });
}

std::uint64_t recorded_collectives() noexcept { return recorded; }

void record_linear(const Invocation& call, const std::vector<at::Tensor>& inputs, std::vector<at::Tensor>& results,
                   Transpose transpose) {
  ++recorded;
  const auto node = std::shared_ptr<LinearNode>(
      new LinearNode(torch::autograd::collect_next_edges(inputs), std::string(call.name), std::move(transpose)),
      torch::autograd::deleteNode);
  for (std::size_t i = 0; i < results.size(); ++i) {
    // Every result takes a number, differentiable or not, so that cotangents and results correspond.
    const auto number = node->add_input_metadata(results[i]);
    if (torch::autograd::isDifferentiableType(inputs[i].scalar_type())) {
      torch::autograd::impl::set_gradient_edge(results[i], {node, number});
    }
  }
}

}  // namespace brigade::lax::detail
