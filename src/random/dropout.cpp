#include "brigade/random/dropout.h"

#include <fmt/format.h>

#include "brigade/base/error.h"
#include "brigade/random/distributions.h"

namespace brigade::random {
namespace {

void check_rate(std::string_view function, double rate) {
  if (rate >= 0.0 && rate < 1.0) return;
  throw InvalidArgument(
      fmt::format("random::{}: the rate is {}; give the share of elements to drop, 0 <= rate < 1", function, rate));
}

}  // namespace

at::Tensor dropout_mask(Key key, at::IntArrayRef shape, double rate) {
  check_rate("dropout_mask", rate);
  return bernoulli(key, 1.0 - rate, shape);
}

at::Tensor dropout(Key key, const at::Tensor& x, double rate) {
  check_rate("dropout", rate);
  if (!x.defined() || !at::isFloatingType(x.scalar_type())) {
    throw InvalidArgument(fmt::format("random::dropout: x is {}; give a floating-point tensor",
                                      x.defined() ? c10::toString(x.scalar_type()) : "undefined"));
  }
  if (rate == 0.0) return x;
  const at::Tensor mask = dropout_mask(key, x.sizes(), rate).to(x.device());
  // Chosen and not multiplied, so that an infinity or NaN in a dropped element does not come through.
  return at::where(mask, x / (1.0 - rate), at::zeros({}, x.options()));
}

}  // namespace brigade::random
