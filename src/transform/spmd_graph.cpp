#include "brigade/transform/spmd_graph.h"

#include <ATen/ATen.h>
#include <ATen/SequenceNumber.h>
#include <fmt/format.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/accumulate_grad.h>
#include <torch/csrc/autograd/functions/utils.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <cstdint>
#include <mutex>
#include <unordered_set>

#include "brigade/base/error.h"
#include "brigade/transform/grad.h"

namespace brigade::detail {
namespace {

using torch::autograd::variable_list;

bool is_differentiable(const at::Tensor& result) { return result.defined() && result.requires_grad(); }

// The numbers of the results that are differentiable on some device. All devices treat these alike.
std::vector<std::size_t> differentiable_anywhere(const PerDevice& results) {
  std::vector<std::size_t> numbers;
  for (std::size_t j = 0; j < results.front().size(); ++j) {
    if (std::any_of(results.begin(), results.end(), [j](const auto& row) { return is_differentiable(row[j]); }))
      numbers.push_back(j);
  }
  return numbers;
}

// Throws InvalidArgument when a graph of `results` ends in a tensor that requires grad and is not among `leaves`: its gradient
// would be lost in silence. Walks each node once.
void refuse_captured(const Axis& axis, int position, const std::vector<at::Tensor>& leaves,
                     const std::vector<at::Tensor>& results, std::source_location site) {
  std::unordered_set<const torch::autograd::Node*> seen;
  std::vector<const torch::autograd::Node*> next;
  const auto visit = [&](const torch::autograd::Node* node) {
    if (node != nullptr && seen.insert(node).second) next.push_back(node);
  };
  // The others hang on these; the end of a leaf is held by nobody else.
  std::vector<std::shared_ptr<torch::autograd::Node>> roots;
  for (const at::Tensor& result : results) {
    if (!is_differentiable(result)) continue;
    roots.push_back(torch::autograd::impl::gradient_edge(result).function);
    visit(roots.back().get());
  }
  while (!next.empty()) {
    const torch::autograd::Node* node = next.back();
    next.pop_back();
    for (const auto& edge : node->next_edges()) visit(edge.function.get());
    const auto* end = dynamic_cast<const torch::autograd::AccumulateGrad*>(node);
    if (end == nullptr || is_grad_variable(end->variable)) continue;
    if (std::any_of(leaves.begin(), leaves.end(), [&](const at::Tensor& leaf) { return leaf.is_same(end->variable); }))
      continue;
    throw InvalidArgument(
        fmt::format(
            "a result of the body depends on a tensor of shape {} that requires grad and is not an argument: it was "
            "captured, or made in the body, and no gradient could reach it. Pass it as an argument (in_axes none "
            "gives it whole to every device), or detach the result",
            c10::str(end->variable.sizes())),
        {.axis = axis.name(), .device = position, .site = site});
  }
}

variable_list tensors_of(const std::vector<Input>& inputs) {
  variable_list all;
  for (const Input& input : inputs) {
    for (const at::Tensor& tensor : input.tensors()) all.push_back(tensor);
  }
  return all;
}

// One call, and how to differentiate it. It does not change, so that several threads may do so at once.
class Call {
 public:
  Call(std::shared_ptr<Axis> axis, std::vector<Input> inputs, PerDevice leaves, PerDevice results,
       std::source_location site)
      : axis_(std::move(axis)),
        inputs_(std::move(inputs)),
        leaves_(std::move(leaves)),
        results_(std::move(results)),
        differentiable_(differentiable_anywhere(results_)),
        site_(site) {}

  variable_list backward(const variable_list& cotangents) const {
    const bool create_graph = at::GradMode::is_enabled();
    PerDevice given = cotangents_per_device(cotangents);
    PerDevice variables = given;
    if (create_graph) {
      number_nodes_after_forward();
      for (auto& row : variables) {
        for (const std::size_t j : differentiable_) row[j] = row[j].detach().requires_grad_();
      }
    }
    PerDevice gradients = differentiate(variables, create_graph);
    if (create_graph) gradients = connect_gradients(given, variables, std::move(gradients));

    variable_list all;
    for (std::size_t k = 0; k < inputs_.size(); ++k) {
      std::vector<at::Tensor> column;
      for (const auto& row : gradients) column.push_back(row[k]);
      for (at::Tensor& gradient : inputs_[k].combine(column)) all.push_back(std::move(gradient));
    }
    return all;
  }

 private:
  // A result without a cotangent counts as zero on every device: the collectives of its backward need all of them. The
  // others have no entry.
  PerDevice cotangents_per_device(const variable_list& flat) const {
    PerDevice rows(results_.size());
    const std::size_t count = results_.front().size();
    for (std::size_t d = 0; d < results_.size(); ++d) {
      rows[d].resize(count);
      for (const std::size_t j : differentiable_) {
        const at::Tensor& cotangent = flat[d * count + j];
        rows[d][j] = cotangent.defined() ? cotangent : at::zeros_like(results_[d][j]);
      }
    }
    return rows;
  }

  // Each device's gradients of its leaves, all devices at once.
  PerDevice differentiate(const PerDevice& cotangents, bool create_graph) const {
    PerDevice gradients(results_.size());
    axis_->run([&](int position) {
      const auto d = static_cast<std::size_t>(position);
      variable_list roots, weights;
      for (const std::size_t j : differentiable_) {
        if (!is_differentiable(results_[d][j])) continue;
        roots.push_back(results_[d][j]);
        weights.push_back(cotangents[d][j]);
      }
      gradients[d].resize(leaves_[d].size());
      if (!roots.empty()) {
        gradients[d] = torch::autograd::grad(roots, leaves_[d], weights, /*retain_graph=*/true, create_graph,
                                             /*allow_unused=*/true);
      }
      for (std::size_t k = 0; k < leaves_[d].size(); ++k) {
        if (!gradients[d][k].defined()) gradients[d][k] = at::zeros_like(leaves_[d][k]);
      }
    });
    return gradients;
  }

  // The gradients as results of a call over the inputs and the cotangents.
  PerDevice connect_gradients(const PerDevice& given, const PerDevice& variables, PerDevice gradients) const {
    std::vector<Input> inputs = inputs_;
    PerDevice leaves = leaves_;
    for (const std::size_t j : differentiable_) {
      std::vector<at::Tensor> column;
      for (std::size_t d = 0; d < given.size(); ++d) {
        column.push_back(given[d][j]);
        leaves[d].push_back(variables[d][j]);
      }
      inputs.push_back(Input::per_device(std::move(column)));
    }
    return connect(axis_, std::move(inputs), std::move(leaves), std::move(gradients), site_);
  }

  // Autograd runs what is ready by numbers that each thread counts for itself, the latest first. Collectives meet in one
  // order only if these grow from the forward pass to its backward on every device, and device 0 is whichever thread
  // calls: one that has counted less than the thread of the forward pass catches up.
  void number_nodes_after_forward() const {
    while (at::sequence_number::peek() < next_number_) at::sequence_number::get_and_increment();
  }

  std::shared_ptr<Axis> axis_;
  std::vector<Input> inputs_;
  PerDevice leaves_;
  PerDevice results_;
  std::vector<std::size_t> differentiable_;
  std::source_location site_;
  std::uint64_t next_number_ = at::sequence_number::peek();
};

class SpmdNode : public torch::autograd::Node {
 public:
  SpmdNode(torch::autograd::edge_list&& edges, std::shared_ptr<const Call> call, ErrorContext context)
      : Node(std::move(edges)), call_(std::move(call)), context_(std::move(context)) {}

  std::string name() const override { return "pmap"; }

  // The engine calls this after a backward that does not keep the graph, so the devices' graphs are always retained
  // within it and dropped here. So are the inputs, whose own graphs would otherwise hang on this node, call after call.
  void release_variables() override {
    std::shared_ptr<const Call> last;  // ends outside of the lock
    const std::lock_guard lock(mutex_);
    last.swap(call_);
  }

 protected:
  // Not under the lock while devices run: another thread's backward takes its turn on them.
  variable_list apply(variable_list&& cotangents) override {
    std::unique_lock lock(mutex_);
    const std::shared_ptr<const Call> call = call_;
    lock.unlock();
    if (!call) {
      throw Error(
          "backward through a pmap a second time, after its graph was freed: pass retain_graph=true the first time",
          context_);
    }
    return call->backward(cotangents);
  }

 private:
  std::shared_ptr<const Call> call_;  // null when the graph was freed
  ErrorContext context_;
};

}  // namespace

PerDevice connect(std::shared_ptr<Axis> axis, std::vector<Input> inputs, PerDevice leaves, PerDevice results,
                  std::source_location site) {
  for (std::size_t d = 0; d < results.size(); ++d) {
    refuse_captured(*axis, static_cast<int>(d), leaves[d], results[d], site);
  }
  PerDevice outside = results;
  for (auto& row : outside) {
    for (at::Tensor& result : row) {
      if (result.defined() && result.requires_grad()) result = result.detach();
    }
  }
  if (inputs.empty()) return outside;

  auto edges = torch::autograd::collect_next_edges(tensors_of(inputs));
  ErrorContext context{.axis = axis->name(), .site = site};
  auto call = std::make_shared<const Call>(std::move(axis), std::move(inputs), std::move(leaves), results, site);
  const auto node = std::shared_ptr<SpmdNode>(new SpmdNode(std::move(edges), std::move(call), std::move(context)),
                                              torch::autograd::deleteNode);
  for (std::size_t d = 0; d < outside.size(); ++d) {
    for (std::size_t j = 0; j < outside[d].size(); ++j) {
      at::Tensor& result = outside[d][j];
      const auto number = result.defined() ? node->add_input_metadata(result)
                                           : node->add_input_metadata(torch::autograd::Node::undefined_input());
      if (result.defined() && results[d][j].requires_grad())
        torch::autograd::impl::set_gradient_edge(result, {node, number});
    }
  }
  return outside;
}

}  // namespace brigade::detail
