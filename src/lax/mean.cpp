// pmean, plain and weighted.
#include "brigade/lax/mean.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>

#include "brigade/base/error.h"
#include "brigade/lax/reduce.h"
#include "linear_node.h"
#include "reducer.h"

namespace brigade::lax::detail {
namespace {

bool is_integral(at::ScalarType type) { return at::isIntegralType(type, /*includeBool=*/true); }

bool is_half(at::ScalarType type) { return type == at::kHalf || type == at::kBFloat16; }

at::ScalarType type_of_mean(at::ScalarType type) { return is_integral(type) ? at::kFloat : type; }

// How sums travel when they are divided afterwards: integers as int64, which no number of devices overflows but for int64
// itself, and halves as float, so that they are rounded once.
at::ScalarType type_of_exact_sum(at::ScalarType type) {
  if (is_integral(type)) return at::kLong;
  return is_half(type) ? at::kFloat : type;
}

at::Tensor divided(const at::Tensor& sum, double count, at::ScalarType type) {
  if (sum.is_complex()) {
    at::view_as_real(sum).div_(count);  // by parts, as the group divides
    return sum;
  }
  return (sum.scalar_type() == at::kLong ? sum.to(at::kDouble) : sum).div_(count).to(type);
}

Tensors plain_mean(const Invocation& call, const Tensors& tensors) {
  const auto count = static_cast<double>(call.size());
  const bool recorded = needs_recording(tensors);
  const std::string tag = call.tag(recorded);
  // Sums are divided where they are added up, in one go. A tree with integers, which have to be whole until then, is
  // divided afterwards, with the same bits, so that all of it still travels together.
  const bool whole =
      std::none_of(tensors.begin(), tensors.end(), [](const at::Tensor& t) { return is_integral(t.scalar_type()); });
  Tensors results = whole ? all_reduce(call, {.divisor = count}, tensors, tag, type_of_mean)
                          : all_reduce(call, {}, tensors, tag, type_of_exact_sum);
  for (std::size_t i = 0; !whole && i < results.size(); ++i) {
    results[i] = divided(results[i], count, type_of_mean(tensors[i].scalar_type()));
  }
  if (recorded) {
    record_linear(call, tensors, results,
                  [call = call.in_backward()](const Tensors& cotangents) { return plain_mean(call, cotangents); });
  }
  return results;
}

// The one number that `weight` is, as float64, whatever it counts.
at::Tensor weight_as_double(const Invocation& call, const at::Tensor& weight) {
  if (weight.numel() != 1) {
    throw ShapeError(
        fmt::format("the weight of a pmean has shape {}: it is one number for each device", c10::str(weight.sizes())),
        call.context());
  }
  if (weight.is_complex()) throw InvalidArgument("the weight of a pmean is complex: weights are real", call.context());
  return weight.reshape({}).to(at::kDouble);
}

at::ScalarType type_of_product(at::ScalarType type) {
  if (is_integral(type)) return at::kDouble;
  return is_half(type) ? at::kFloat : c10::toRealValueType(type);
}

// Complex numbers by parts, real ones as they are.
at::Tensor real_parts(const at::Tensor& tensor) {
  return tensor.is_complex() ? at::view_as_real(tensor.resolve_conj()) : tensor;
}

// Everything but the one meeting is recorded by libtorch, so derivatives follow from psum's.
Tensors weighted_mean(const Invocation& call, const Tensors& tensors, const at::Tensor& weight) {
  const at::Tensor own = weight_as_double(call, weight);
  const bool counts = own.item<double>() != 0;
  Tensors products;
  for (const at::Tensor& tensor : tensors) {
    at::Tensor value = real_parts(tensor);
    if (!counts) value = at::where(at::isfinite(value), value, at::zeros({}, value.options()));
    const at::ScalarType type = type_of_product(tensor.scalar_type());
    products.push_back(value.to(type) * own.to(type));
  }
  products.push_back(own);
  const Tensors sums = psum(call, std::move(products));

  const at::Tensor& total = sums.back();
  if (total.item<double>() == 0) {
    throw InvalidArgument(
        "the weights of a pmean add up to 0, so that nothing is left to average: some device needs one",
        call.context());
  }
  Tensors results;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const at::Tensor mean = sums[i] / total.to(sums[i].scalar_type());
    results.push_back(tensors[i].is_complex() ? at::view_as_complex(mean)
                                              : mean.to(type_of_mean(tensors[i].scalar_type())));
  }
  return results;
}

}  // namespace

Tensors pmean(const Invocation& call, Tensors tensors, const at::Tensor& weight) {
  return weight.defined() ? weighted_mean(call, tensors, weight) : plain_mean(call, tensors);
}

}  // namespace brigade::lax::detail
