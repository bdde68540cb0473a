#include "brigade/train/activation_checkpoint.h"

#include <ATen/ATen.h>
#include <ATen/SequenceNumber.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/accumulate_grad.h>
#include <torch/csrc/autograd/functions/utils.h>
#include <torch/csrc/autograd/saved_variable.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <mutex>
#include <unordered_set>

#include "brigade/base/error.h"
#include "brigade/train/leaf.h"
#include "precision.h"

namespace brigade::nn::detail {
namespace {

using torch::autograd::AccumulateGrad;
using torch::autograd::Node;
using torch::autograd::SavedVariable;
using torch::autograd::variable_list;

// What the first computation depended on, besides its inputs.
struct Circumstances {
  training::LeafPoint leaf = training::LeafPoint::current();
  training::AutocastState autocast = training::AutocastState::current();
};

// Which gradients a backward is about: grad() hands them out, and does not put any into parameters.
enum class Asks { kAll, kInputsOnly };

[[noreturn]] void refuse_captured(const std::string& what) {
  throw InvalidArgument(
      fmt::format("nn::checkpoint: the function uses a tensor {}. Pass it as an input of the checkpoint, so that its "
                  "gradient gets there",
                  what));
}

// Throws InvalidArgument when a graph of `results`, whose nodes are numbered from `first` on, goes on into one that was there
// before, or ends in a tensor that gets no gradient.
void check_graph(const variable_list& results, const variable_list& inputs, std::uint64_t first, Asks asks) {
  std::unordered_set<const Node*> seen;
  std::vector<const Node*> next;
  const auto visit = [&](const Node* node) {
    if (node != nullptr && seen.insert(node).second) next.push_back(node);
  };
  for (const at::Tensor& result : results) visit(torch::autograd::impl::gradient_edge(result).function.get());
  while (!next.empty()) {
    const Node* node = next.back();
    next.pop_back();
    const auto* leaf = dynamic_cast<const AccumulateGrad*>(node);
    if (leaf == nullptr && node->sequence_nr() < first)
      refuse_captured(fmt::format("that was computed outside of it, by {}", node->name()));
    if (leaf != nullptr && asks == Asks::kInputsOnly &&
        std::none_of(inputs.begin(), inputs.end(),
                     [&](const at::Tensor& one) { return one.is_same(leaf->variable); })) {
      refuse_captured(
          fmt::format("of shape [{}] that is no input, under a grad() that leaves no gradients in parameters",
                      fmt::join(leaf->variable.sizes(), ", ")));
    }
    for (const auto& edge : node->next_edges()) visit(edge.function.get());
  }
}

class CheckpointNode : public Node {
 public:
  CheckpointNode(torch::autograd::edge_list&& edges, TensorFunction function, const variable_list& inputs,
                 Circumstances then)
      : Node(std::move(edges)), function_(std::move(function)), then_(then) {
    for (const at::Tensor& input : inputs) inputs_.emplace_back(input, /*is_output=*/false);
  }

  std::string name() const override { return "nn::checkpoint"; }

  void release_variables() override {
    const std::lock_guard lock(mutex_);
    function_ = nullptr;
    inputs_.clear();
  }

 protected:
  variable_list apply(variable_list&& gradients) override {
    if (at::GradMode::is_enabled()) {
      throw InvalidArgument(
          "nn::checkpoint has no second derivative: to differentiate a gradient (create_graph = true), call the "
          "function "
          "without it");
    }
    const auto [function, inputs] = unpack();
    const std::uint64_t first = at::sequence_number::peek();
    variable_list results = compute_again(function, inputs);
    if (results.size() != gradients.size()) {
      throw InvalidArgument(fmt::format(
          "nn::checkpoint: the function gave {} tensors, and {} when it was computed again: it has to compute the same",
          gradients.size(), results.size()));
    }
    variable_list roots, weights;
    for (std::size_t i = 0; i < results.size(); ++i) {
      if (!gradients[i].defined() || !results[i].requires_grad()) continue;
      roots.push_back(std::move(results[i]));
      weights.push_back(std::move(gradients[i]));
    }
    return roots.empty() ? variable_list(inputs.size()) : differentiate(roots, inputs, weights, first);
  }

 private:
  // The function, and variables of its own for what it gets.
  std::pair<TensorFunction, variable_list> unpack() {
    const std::lock_guard lock(mutex_);
    if (!function_) {
      throw InvalidArgument(
          "nn::checkpoint: backward came through a second time, and the first has dropped what it needs: keep it with "
          "retain_graph = true");
    }
    variable_list inputs;
    for (const SavedVariable& saved : inputs_) {
      const at::Tensor input = saved.unpack();
      inputs.push_back(input.defined() ? input.detach().requires_grad_(input.requires_grad()) : input);
    }
    return {function_, std::move(inputs)};
  }

  variable_list compute_again(const TensorFunction& function, const variable_list& inputs) const {
    const at::AutoGradMode with_graph(true);
    const training::AutocastScope autocast(then_.autocast);
    const training::RecomputeScope recompute(then_.leaf);
    return function(inputs);
  }

  static variable_list differentiate(const variable_list& roots, const variable_list& inputs,
                                     const variable_list& weights, std::uint64_t first) {
    const Asks asks =
        torch::autograd::Engine::get_default_engine().is_checkpoint_valid() ? Asks::kAll : Asks::kInputsOnly;
    check_graph(roots, inputs, first, asks);
    variable_list gradients(inputs.size());
    if (asks == Asks::kAll) {
      torch::autograd::backward(roots, weights);
      for (std::size_t i = 0; i < inputs.size(); ++i) {
        if (inputs[i].defined()) gradients[i] = inputs[i].grad();
      }
      return gradients;
    }
    variable_list asked;
    for (const at::Tensor& input : inputs) {
      if (input.defined() && input.requires_grad()) asked.push_back(input);
    }
    if (asked.empty()) return gradients;
    const variable_list found = torch::autograd::grad(roots, asked, weights, /*retain_graph=*/false,
                                                      /*create_graph=*/false, /*allow_unused=*/true);
    std::size_t used = 0;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (inputs[i].defined() && inputs[i].requires_grad()) gradients[i] = found[used++];
    }
    return gradients;
  }

  TensorFunction function_;
  std::vector<SavedVariable> inputs_;
  Circumstances then_;
};

}  // namespace

std::vector<at::Tensor> checkpoint(TensorFunction function, std::vector<at::Tensor> inputs) {
  if (!at::GradMode::is_enabled()) return function(inputs);
  const Circumstances now;
  // Parameters do not show, so whatever comes out may depend on one.
  const std::shared_ptr<CheckpointNode> node(
      new CheckpointNode(torch::autograd::collect_next_edges(inputs), function, inputs, now),
      torch::autograd::deleteNode);
  variable_list results;
  {
    const at::NoGradGuard no_graph;
    const training::AutocastScope autocast(now.autocast);
    results = function(inputs);
    for (at::Tensor& result : results) {
      if (result.defined()) result = result.detach();  // it may be an input, or a parameter
    }
  }
  for (at::Tensor& result : results) {
    if (result.defined() && torch::autograd::isDifferentiableType(result.scalar_type())) {
      torch::autograd::set_history(result, node);
    } else {
      node->add_input_metadata(Node::undefined_input());
    }
  }
  return results;
}

}  // namespace brigade::nn::detail
