// pmean, plain and weighted. What holds for all collectives is said in collectives.h.
#pragma once

#include <concepts>

#include "brigade/lax/leaves.h"

namespace brigade::lax {

// What one device's value counts in a mean: a number, or a tensor with one element. None: all devices count alike.
class Weight {
 public:
  Weight() = default;
  template <class Number>
  requires std::is_arithmetic_v<Number> Weight(Number value)  // NOLINT(google-explicit-constructor)
      : value_(detail::to_tensor(value)) {}
  Weight(at::Tensor value) : value_(std::move(value)) {}  // NOLINT(google-explicit-constructor)

  const at::Tensor& tensor() const noexcept { return value_; }  // undefined: none

 private:
  at::Tensor value_;
};

struct MeanOptions {
  Weight weight = {};
  AxisIndexGroups axis_index_groups = {};
};

namespace detail {

// An undefined weight stands for none.
Tensors pmean(const Invocation& call, Tensors tensors, const at::Tensor& weight);

}  // namespace detail

// Sum over the axis divided by N. Floating sums are divided once, where they are reduced, and correctly rounded; integers
// and bool are summed exactly (as int64), divided in float64, and become float32. Gradient: pmean.
//
// With a weight w on every device: sum of w * x over sum of w, which is the mean over all rows when w is the number of a
// device's rows and x their mean. The products, their sums and the division are taken in the dtype of x (float16 and
// bfloat16 in float32, integers in float64). A device of weight 0 counts for nothing, whatever its value: what is not
// finite there, such as the mean of no rows, is taken for 0. Gradients with respect to x and w are those of the formula.
// Throws InvalidArgument, on every device, when the weights add up to 0, and for a complex weight; ShapeError for a weight
// that is not one number.
template <AnyTree T>
TreeOf<T> pmean(T&& tree, const AxisNames& axis, const MeanOptions& options = {}, Site site = Site::current()) {
  static_assert(!detail::kHasIntegers<T>, "the mean of an integer is none: make it a double, or a tensor, first");
  auto call = detail::enter("pmean", axis, options.axis_index_groups, site);
  return detail::map_together(std::forward<T>(tree), std::move(call), detail::pmean, options.weight.tensor());
}

}  // namespace brigade::lax
