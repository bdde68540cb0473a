// Gradients that are averaged, or summed, over the devices while backward still computes.
//
//   auto [loss, grads] = value_and_grad(loss_fn, lax::reduce_mean("devices"))(params, x, y);
//
// The same bits as lax::pmean(value_and_grad(loss_fn)(params, x, y), "devices") and, with lax::reduce_sum, as lax::psum of
// it, but the reduction of each gradient starts as soon as backward has produced it, in buckets of about 256 KB. It is also
// the right thing in a short form: the gradient of a loss that was reduced inside the function, grad(psum(loss)), is N
// times the local one.
//
// A gradient that one device lacks, as its loss does not depend on the leaf, counts as zeros. Where the function calls
// differentiable collectives itself, these meet again in backward, and the reduction starts after it.
#pragma once

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "brigade/lax/gradient_reduction.h"
#include "brigade/transform/grad.h"

namespace brigade {

namespace detail {

// Throws InvalidArgument when somebody outside differentiates: there is a first derivative only.
void require_first_order(const Variables& variables, const lax::Reduction& reduction);

// What the function gets instead of the variables, so that every gradient goes to `reduction` when it is complete.
std::vector<at::Tensor> tap(const std::vector<at::Tensor>& variables,
                            const std::shared_ptr<lax::detail::GradientReduction>& reduction);

// The reduced loss, and the reduced gradients of the variables. Throws as differentiate(), and what collectives throw.
std::pair<at::Tensor, std::vector<at::Tensor>> differentiate(const at::Tensor& loss,
                                                             const std::vector<at::Tensor>& variables,
                                                             lax::detail::GradientReduction& reduction);

}  // namespace detail

// Inside the body of a pmap. Returns a callable (tree, rest...) -> std::pair<value, gradients>, as without a reduction;
// auxiliary results stay each device's own.
//
// Throws AxisError when the axis is not in scope, and InvalidArgument when a second derivative is asked for, which is when
// the call is differentiated from outside or an argument requires grad: take lax::pmean(grad(f)(...)) then.
template <class F>
auto value_and_grad(F f, lax::Reduction reduction) {
  return
      [f = std::move(f), reduction = std::move(reduction)]<class T, class... Rest>(const T& at, const Rest&... rest) {
        static_assert(tree::Tree<T>, "the first argument, which is differentiated, must be a tree");
        using Value = std::remove_cvref_t<std::invoke_result_t<const F&, const T&, const Rest&...>>;
        static_assert(detail::is_differentiable_value<Value>,
                      "a function to differentiate returns a tensor, or a std::pair of a tensor and auxiliary results");

        const bool outside = at::GradMode::is_enabled();
        const at::AutoGradMode recording(true);
        const detail::Variables variables = detail::make_variables(
            tree::flatten(at), [&](std::size_t i) { return tree::paths(at)[i]; }, outside,
            (detail::requires_grad(rest) || ...));
        detail::require_first_order(variables, reduction);
        const auto reducing = std::make_shared<lax::detail::GradientReduction>(reduction, variables.tensors);
        const detail::DifferentiationDepth deeper(detail::differentiation_depth() + 1);
        Value value = std::invoke(f, tree::unflatten(at, detail::tap(variables.tensors, reducing)), rest...);

        auto [loss, gradients] = detail::differentiate(detail::loss_of(value), variables.tensors, *reducing);
        T grads = tree::unflatten(at, gradients);
        detail::zero_numbers(grads);
        if constexpr (detail::is_loss_with_aux<Value>) {
          return std::pair<Value, T>(Value(std::move(loss), detail::without_graph(std::move(value.second))),
                                     std::move(grads));
        } else {
          return std::pair<Value, T>(std::move(loss), std::move(grads));
        }
      };
}

}  // namespace brigade
