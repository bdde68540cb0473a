// Dropout for models that a DataParallel trains: its masks come from the key of the leaf and the number of the draw, so they are
// the same on any number of devices, and when a checkpointed segment is computed again. libtorch's draws from the one generator
// of the process.
//
//   nn::Dropout drop{nullptr};
//   drop = register_module("drop", nn::Dropout(0.5));
//
// N. Srivastava et al., JMLR 15, 2014; J. Tompson et al., CVPR 2015 (whole features); G. Klambauer et al., NeurIPS 2017 (alpha).
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/cloneable.h>
#include <torch/nn/options/dropout.h>
#include <torch/nn/pimpl.h>

#include <cstdint>
#include <iosfwd>
#include <memory>

#include "brigade/train/module_handle.h"

namespace brigade::nn {

struct DropoutOptions {
  enum class Of : std::uint8_t {
    kElements,
    kFeatures,  // all of x[n][c] together, as torch::nn::Dropout2d and Dropout3d
  };
  enum class Form : std::uint8_t {
    kZero,   // dropped elements are 0, the others divided by 1 - p
    kAlpha,  // for SELU: mean 0 and variance 1 stay, as torch::nn::AlphaDropout
  };

  Of of = Of::kElements;
  Form form = Form::kZero;
};

class DropoutImpl : public torch::nn::Cloneable<DropoutImpl> {
 public:
  // `p` is the probability to drop. Throws InvalidArgument unless 0 <= p <= 1.
  explicit DropoutImpl(double p = 0.5, DropoutOptions options = {});
  // With the p of libtorch's options.
  explicit DropoutImpl(const torch::nn::DropoutOptions& options) : DropoutImpl(options.p()) {}

  // In evaluation mode, and for p = 0, `x` itself. In training mode it takes one draw of the leaf that the calling thread runs;
  // throws InvalidArgument where there is none.
  at::Tensor forward(const at::Tensor& x);

  void reset() override {}
  void pretty_print(std::ostream& stream) const override;

  double p() const noexcept { return p_; }
  const DropoutOptions& options() const noexcept { return options_; }

 private:
  double p_;
  DropoutOptions options_;
};

class Dropout : public torch::nn::ModuleHolder<DropoutImpl> {
 public:
  using ModuleHolder::ModuleHolder;
  using Impl = DropoutImpl;
  Dropout() = default;
  Dropout(double p, DropoutOptions options) : ModuleHolder(std::make_shared<DropoutImpl>(p, options)) {}
};

// Puts nn::Dropout in the place of libtorch's Dropout, Dropout2d, Dropout3d, AlphaDropout and FeatureAlphaDropout inside
// `module`, as far as they lie in a Sequential, ModuleList or ModuleDict, at any depth. Those with p = 0 draw nothing and stay.
// Code that reaches a converted element by its type (`list->at<torch::nn::DropoutImpl>(0)`) has to name the new one.
//
// A class that holds one in a member calls it through a handle of that type, which nobody else can change. Then, as for the model
// itself and for a module of which somebody else keeps a handle, InvalidArgument names all of them and nothing is replaced:
// declare such a member as nn::Dropout.
void convert_dropout(torch::nn::Module& module);

// The same for a holder or a shared_ptr, which it returns:
//   DataParallel trainer([] { return nn::convert_dropout(make_model()); }, options);
template <training::ModuleHandle M>
M convert_dropout(M model) {
  convert_dropout(*model);
  return model;
}

}  // namespace brigade::nn
