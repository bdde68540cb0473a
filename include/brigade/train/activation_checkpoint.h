// Activation checkpointing: memory for time. A segment of the forward pass keeps its inputs only, and is computed again in backward.
//
//   at::Tensor forward(const at::Tensor& x) {
//     return nn::checkpoint([this](const at::Tensor& h) { return block(h); }, x);
//   }
//
// T. Chen et al., "Training deep nets with sublinear memory cost", 2016.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "brigade/tree/tree.h"

namespace brigade::nn {
namespace detail {

using TensorFunction = std::function<std::vector<at::Tensor>(const std::vector<at::Tensor>&)>;

std::vector<at::Tensor> checkpoint(TensorFunction function, std::vector<at::Tensor> inputs);

// What is left of a tree when nothing of it shall be kept alive.
template <tree::Tree T>
T without_tensors(const T& tree) {
  return tree::map([](const at::Tensor&) { return at::Tensor(); }, tree);
}

}  // namespace detail

// function(inputs...), where inputs and the result are tensors or trees of them. `function` is called now without a graph, and
// once more in each backward that comes through, with the same draws of the leaf, autocast and values. So it lives until then:
// capture by value, or what lives as long as the model. It has no effects of its own, and may call checkpoint itself.
//
// Gradients reach the inputs, and in a backward() the parameters that it uses, which get theirs in a part for each segment that uses
// them. Under grad() and value_and_grad() parameters have to be inputs too: captured ones would be constants. Tensors with a graph
// that were computed outside have to be inputs in any case. Where a gradient would be lost, and for the gradient of a gradient,
// backward throws InvalidArgument.
//
// Where gradients are off it is a plain call.
template <class Function, tree::Tree... Inputs>
auto checkpoint(Function function, const Inputs&... inputs) {
  using Result = std::remove_cvref_t<std::invoke_result_t<Function&, const Inputs&...>>;
  static_assert(tree::Tree<Result>, "what is computed again is a tensor or a tree of tensors");
  const std::tuple<Inputs...> all(inputs...);
  const auto shape = std::make_shared<std::optional<Result>>();  // of the result, from the first call
  auto on_tensors = [function = std::move(function), arguments = detail::without_tensors(all),
                     shape](const std::vector<at::Tensor>& tensors) mutable {
    const Result result = std::apply(function, tree::unflatten(arguments, tensors));
    if (!shape->has_value()) shape->emplace(detail::without_tensors(result));
    return tree::flatten(result);
  };
  const std::vector<at::Tensor> results = detail::checkpoint(std::move(on_tensors), tree::flatten(all));
  return tree::unflatten(**shape, results);
}

}  // namespace brigade::nn
