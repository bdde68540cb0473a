#include "brigade/train/dropout.h"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <torch/nn/modules/dropout.h>

#include <cmath>
#include <ostream>

#include "brigade/base/error.h"
#include "brigade/random/dropout.h"
#include "brigade/train/leaf.h"
#include "module_places.h"

namespace brigade::nn {
namespace {

using Of = DropoutOptions::Of;
using Form = DropoutOptions::Form;

random::Key next_key() {
  if (training::inside_leaf()) return training::next_leaf_key();
  throw InvalidArgument(
      "nn::Dropout: it is in training mode, and no leaf runs on this thread whose key it could draw from. There is one "
      "inside "
      "the loss function of a DataParallel. Elsewhere let a training::LeafScope live around the call, or put the model "
      "into "
      "evaluation mode (model->eval())");
}

// One element for each decision: broadcast over what is kept or dropped together.
std::vector<std::int64_t> decisions(const at::Tensor& x, Of of) {
  std::vector<std::int64_t> sizes = x.sizes().vec();
  if (of == Of::kElements) return sizes;
  if (sizes.size() < 2) {
    throw ShapeError(fmt::format("nn::Dropout of features: x has {} dimensions; give [N, C, ...]", sizes.size()));
  }
  std::fill(sizes.begin() + 2, sizes.end(), 1);
  return sizes;
}

// What keeps mean 0 and variance 1 of SELU's outputs, whose limit at minus infinity is -kLimit.
at::Tensor alpha_dropout(const at::Tensor& x, const at::Tensor& kept, double p) {
  constexpr double kLimit = 1.7580993408473766;
  const double scale = 1.0 / std::sqrt((kLimit * kLimit * p + 1.0) * (1.0 - p));
  const double shift = kLimit * scale * p;
  return at::where(kept, x, at::full({}, -kLimit, x.options())) * scale + shift;
}

}  // namespace

DropoutImpl::DropoutImpl(double p, DropoutOptions options) : p_(p), options_(options) {
  if (p >= 0.0 && p <= 1.0) return;
  throw InvalidArgument(fmt::format("nn::Dropout: p is {}; give the probability to drop, 0 <= p <= 1", p));
}

at::Tensor DropoutImpl::forward(const at::Tensor& x) {
  if (!is_training() || p_ == 0.0) return x;
  const random::Key key = next_key();
  if (p_ == 1.0) return at::where(at::zeros({}, x.options().dtype(at::kBool)), x, at::zeros({}, x.options()));
  if (options_.of == Of::kElements && options_.form == Form::kZero) return random::dropout(key, x, p_);
  const at::Tensor kept = random::dropout_mask(key, decisions(x, options_.of), p_).to(x.device());
  if (options_.form == Form::kAlpha) return alpha_dropout(x, kept, p_);
  return at::where(kept, x / (1.0 - p_), at::zeros({}, x.options()));
}

void DropoutImpl::pretty_print(std::ostream& stream) const {
  stream << "brigade::nn::Dropout(p=" << p_ << (options_.of == Of::kFeatures ? ", of features" : "")
         << (options_.form == Form::kAlpha ? ", alpha" : "") << ")";
}

void convert_dropout(torch::nn::Module& module) {
  const auto replacement = [](const torch::nn::Module& one) {
    const auto by = [&](double p, DropoutOptions options) {
      return p == 0.0 ? torch::nn::AnyModule() : torch::nn::AnyModule(Dropout(p, options));
    };
    if (const auto* old = training::exactly<torch::nn::DropoutImpl>(one)) return by(old->options.p(), {});
    if (const auto* old = training::exactly<torch::nn::Dropout2dImpl>(one))
      return by(old->options.p(), {.of = Of::kFeatures});
    if (const auto* old = training::exactly<torch::nn::Dropout3dImpl>(one))
      return by(old->options.p(), {.of = Of::kFeatures});
    if (const auto* old = training::exactly<torch::nn::AlphaDropoutImpl>(one))
      return by(old->options.p(), {.form = Form::kAlpha});
    if (const auto* old = training::exactly<torch::nn::FeatureAlphaDropoutImpl>(one))
      return by(old->options.p(), {.of = Of::kFeatures, .form = Form::kAlpha});
    return torch::nn::AnyModule();
  };
  training::replace_modules(module, {.converter = "nn::convert_dropout", .declare_as = "nn::Dropout"}, replacement);
}

}  // namespace brigade::nn
