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

#include <memory>
#include <utility>
#include <vector>

#include "brigade/lax/gradient_reduction.h"
#include "brigade/transform/grad.h"

namespace brigade {

namespace detail {

// How gradients come about with one.
class ReducedGradients {
 public:
  // Throws InvalidArgument when somebody outside differentiates: there is a first derivative only.
  ReducedGradients(const Variables& variables, const lax::Reduction& how);

  // What the function gets instead of the variables, so that every gradient goes to the reduction when it is complete.
  std::vector<at::Tensor> inputs() const;

  // The reduced gradients. The loss becomes the reduced one. Throws as differentiate(), and what collectives throw.
  std::vector<at::Tensor> of(at::Tensor& loss) const;

 private:
  const std::vector<at::Tensor>& variables_;
  std::shared_ptr<lax::detail::GradientReduction> reduction_;
};

}  // namespace detail

// Inside the body of a pmap. Returns a callable (tree, rest...) -> std::pair<value, gradients>, as without a reduction;
// auxiliary results stay each device's own.
//
// Throws AxisError when the axis is not in scope, and InvalidArgument when a second derivative is asked for, which is when
// the call is differentiated from outside or an argument requires grad: take lax::pmean(grad(f)(...)) then.
template <class F>
auto value_and_grad(F f, lax::Reduction reduction) {
  return detail::value_and_grad_by(std::move(f),
                                   [reduction = std::move(reduction)](const detail::Variables& variables) {
                                     return detail::ReducedGradients(variables, reduction);
                                   });
}

}  // namespace brigade
