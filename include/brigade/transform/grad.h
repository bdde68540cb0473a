// Gradients of functions of trees, as jax.grad and jax.value_and_grad.
//
//   Params g = grad(loss)(params, x, y);                       // d loss / d params, a tree like params
//   auto [value, g] = value_and_grad(loss)(params, x, y);
//
// The function returns a scalar floating tensor, or a pair of one and anything else (auxiliary results, passed through
// as part of the value and without gradient). Only the first argument is differentiated; numbers in it are constants,
// whose entry in the gradient is 0. Of a complex tensor it is libtorch's gradient, the conjugate of JAX's: a step against
// it descends. Derivatives nest: grad(grad(f)), and grad of a function that calls pmap.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <functional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "brigade/transform/sharded.h"
#include "brigade/tree/tree.h"

namespace brigade {

namespace detail {

// Differentiation in progress on this thread, which decides what an inner one must record. pmap hands it to the
// devices.
int& differentiation_depth() noexcept;

// Sets it while it lives.
class DifferentiationDepth {
 public:
  explicit DifferentiationDepth(int depth) noexcept : before_(std::exchange(differentiation_depth(), depth)) {}
  ~DifferentiationDepth() { differentiation_depth() = before_; }
  DifferentiationDepth(const DifferentiationDepth&) = delete;
  DifferentiationDepth& operator=(const DifferentiationDepth&) = delete;

 private:
  int before_;
};

// What one call of grad differentiates: the variables that stand for the argument's tensors, and whether the result must
// be differentiable in turn, because someone outside differentiates too.
struct Variables {
  std::vector<at::Tensor> tensors;
  std::function<std::string(std::size_t)> path_of;  // of a tensor's place in the argument, which outlives this
  bool create_graph = false;
};

// `recording` is the caller's grad mode: with it off, nobody outside differentiates. Throws InvalidArgument for a tensor
// whose dtype has no derivative, TreeError for an undefined one, both with the path.
Variables make_variables(const std::vector<at::Tensor>& originals, std::function<std::string(std::size_t)> path_of,
                         bool recording, bool others_require_grad);

// Whether `tensor` is a variable that a grad inside the body of a pmap made for itself.
bool is_grad_variable(const at::Tensor& tensor);

// Throws ShapeError unless the loss is a scalar, InvalidArgument unless it is floating.
void require_scalar(const at::Tensor& loss);

// d loss / d variables; zeros where the loss does not depend on one. Throws as require_scalar().
std::vector<at::Tensor> differentiate(const at::Tensor& loss, const Variables& variables);

template <class Result>
inline constexpr bool is_loss_with_aux = false;
template <class Aux>
inline constexpr bool is_loss_with_aux<std::pair<at::Tensor, Aux>> = true;

template <class Value>
inline constexpr bool is_differentiable_value = std::is_same_v<Value, at::Tensor> || is_loss_with_aux<Value>;

template <class T>
bool requires_grad(const T& value) {
  if constexpr (tree::Tree<T>) {
    bool any = false;
    tree::for_each(
        [&](const tree::Path&, const auto& leaf) {
          if constexpr (tree::TensorLeaf<std::remove_cvref_t<decltype(leaf)>>) {
            any = any || (leaf.defined() && leaf.requires_grad());
          }
        },
        value);
    return any;
  } else if constexpr (is_sharded<T>) {
    return std::any_of(value.begin(), value.end(), [](const auto& own) { return requires_grad(own); });
  } else {
    return false;
  }
}

// The gradient of a number is 0.
template <class T>
void zero_numbers(T& gradients) {
  tree::for_each(
      [](const tree::Path&, auto& leaf) {
        if constexpr (tree::NumberLeaf<std::remove_cvref_t<decltype(leaf)>>) leaf = {};
      },
      gradients);
}

// The loss in the value of a function to differentiate.
template <class Value>
at::Tensor& loss_of(Value& value) {
  if constexpr (is_loss_with_aux<Value>) {
    return value.first;
  } else {
    return value;
  }
}

// Whoever does not differentiate outside gets values without a graph.
template <class T>
T without_graph(T value) {
  if constexpr (tree::Tree<T>) {
    return tree::map([](const at::Tensor& t) { return t.defined() ? t.detach() : t; }, value);
  } else if constexpr (is_sharded<T>) {
    typename T::Values values;
    for (const auto& own : value) values.push_back(without_graph(own));
    return T(std::move(values), value.out_axes());
  } else if constexpr (tree::TupleNode<T>) {
    return std::apply([](auto&... parts) { return T{without_graph(std::move(parts))...}; }, value);
  } else {
    return value;
  }
}

// How gradients come about without a reduction.
struct PlainGradients {
  const Variables& variables;

  // What the function gets in place of the argument's tensors.
  const std::vector<at::Tensor>& inputs() const { return variables.tensors; }

  std::vector<at::Tensor> of(const at::Tensor& loss) const { return differentiate(loss, variables); }
};

// value_and_grad, by what start(variables) returns, in the manner of PlainGradients; its of() may replace the loss.
template <class F, class Start>
auto value_and_grad_by(F f, Start start) {
  return [f = std::move(f), start = std::move(start)]<class T, class... Rest>(const T& at, const Rest&... rest) {
    static_assert(tree::Tree<T>, "the first argument, which is differentiated, must be a tree");
    using Value = std::remove_cvref_t<std::invoke_result_t<const F&, const T&, const Rest&...>>;
    static_assert(is_differentiable_value<Value>,
                  "a function to differentiate returns a tensor, or a std::pair of a tensor and auxiliary results");

    const bool outside = at::GradMode::is_enabled();
    const at::AutoGradMode recording(true);
    const Variables variables = make_variables(
        tree::flatten(at), [&](std::size_t i) { return tree::paths(at)[i]; }, outside, (requires_grad(rest) || ...));
    const auto gradients = start(variables);
    const DifferentiationDepth deeper(differentiation_depth() + 1);
    Value value = std::invoke(f, tree::unflatten(at, gradients.inputs()), rest...);

    T grads = tree::unflatten(at, gradients.of(loss_of(value)));
    zero_numbers(grads);
    if (!variables.create_graph) value = without_graph(std::move(value));
    return std::pair<Value, T>(std::move(value), std::move(grads));
  };
}

}  // namespace detail

// See the head of this file. Returns a callable (tree, rest...) -> std::pair<value, gradients>.
template <class F>
auto value_and_grad(F f) {
  return detail::value_and_grad_by(
      std::move(f), [](const detail::Variables& variables) { return detail::PlainGradients{variables}; });
}

// See the head of this file. Returns a callable (tree, rest...) -> gradients.
template <class F>
auto grad(F f) {
  return [f = value_and_grad(std::move(f))](const auto& at, const auto&... rest) { return f(at, rest...).second; };
}

}  // namespace brigade
