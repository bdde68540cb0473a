// Batch normalization for models that a DataParallel trains: over all leaves of the step, over groups of them, or leaf by leaf,
// with one set of running statistics.
//
//   nn::SyncBatchNorm bn{nullptr};
//   bn = register_module("bn", nn::SyncBatchNorm(64));
//
// S. Ioffe and C. Szegedy, ICML 2015; leaf by leaf: E. Hoffer et al., "Train longer, generalize better", NeurIPS 2017.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/cloneable.h>
#include <torch/nn/options/batchnorm.h>
#include <torch/nn/pimpl.h>

#include <cstdint>
#include <iosfwd>
#include <memory>
#include <optional>

#include "brigade/train/module_handle.h"

namespace brigade::nn {

struct BatchNormOptions {
  double eps = 1e-5;
  std::optional<double> momentum =
      0.1;  // weight of a batch in the running statistics; none: their average over all batches
  bool affine = true;
  bool track_running_stats = true;
  std::int64_t group = 0;  // consecutive leaves that are normalised together; 0: all. The last group may be smaller
};

// What both layers below are. Tensors have the names of torch::nn::BatchNorm's, so that either loads what the other saved.
class BatchNormImpl : public torch::nn::Cloneable<BatchNormImpl> {
 public:
  struct Tensors {
    at::Tensor weight, bias;                                    // undefined without affine
    at::Tensor running_mean, running_var, num_batches_tracked;  // undefined without track_running_stats
  };

  explicit BatchNormImpl(std::int64_t features, BatchNormOptions options = {});
  // These very tensors.
  BatchNormImpl(std::int64_t features, BatchNormOptions options, Tensors tensors);
  // With libtorch's options.
  explicit BatchNormImpl(const torch::nn::BatchNormOptions& options);

  // x is [N, C] or [N, C, ...] with up to three more dimensions, in float32 or float64, or in half precision, whose statistics
  // are those of float32.
  //
  // In training mode mean and variance are those of the leaf's group, weighted by the number of elements, and gradients are those
  // of the normalisation of the whole group. All leaves of the step call it, the same number of times in the same order, but for
  // groups of one leaf. Running statistics take in each group once, in the order of leaves, with its unbiased variance, when the
  // step has succeeded; a step that throws or is skipped leaves them. Under nn::checkpoint the recomputation meets again, and is
  // not counted.
  //
  // Inside the body of a pmap, whose devices have a module each, they are the leaves, and running statistics change in the call;
  // elsewhere there is one leaf.
  //
  // In evaluation mode the running statistics are taken, or those of x where none are tracked. Throws ShapeError, and
  // InvalidArgument for a group with one value a channel, as its variance says nothing.
  at::Tensor forward(const at::Tensor& x);

  void reset() override;
  void pretty_print(std::ostream& stream) const override;

  std::int64_t features() const noexcept { return features_; }
  const BatchNormOptions& options() const noexcept { return options_; }

  at::Tensor weight, bias, running_mean, running_var, num_batches_tracked;

 private:
  void adopt(Tensors tensors);

  std::int64_t features_;
  BatchNormOptions options_;
};

// Over all leaves, or groups of them.
class SyncBatchNorm : public torch::nn::ModuleHolder<BatchNormImpl> {
 public:
  using ModuleHolder::ModuleHolder;
  using Impl = BatchNormImpl;
  SyncBatchNorm(std::int64_t features, BatchNormOptions options)
      : ModuleHolder(std::make_shared<BatchNormImpl>(features, options)) {}
};

// Leaf by leaf: groups of one. Nothing meets, and with logical_shards the small batches are the same on any number of devices.
class GhostBatchNorm : public torch::nn::ModuleHolder<BatchNormImpl> {
 public:
  using Impl = BatchNormImpl;
  GhostBatchNorm(std::nullptr_t) : ModuleHolder(nullptr) {}
  GhostBatchNorm(std::shared_ptr<BatchNormImpl> module) : ModuleHolder(std::move(module)) {}
  explicit GhostBatchNorm(std::int64_t features, BatchNormOptions options = {})
      : ModuleHolder(std::make_shared<BatchNormImpl>(features, of_one_leaf(options))) {}

 private:
  static BatchNormOptions of_one_leaf(BatchNormOptions options) {
    options.group = 1;
    return options;
  }
};

struct ConvertOptions {
  std::int64_t group = 0;  // as in BatchNormOptions
};

// Puts nn::SyncBatchNorm in the place of libtorch's BatchNorm1d, 2d and 3d inside `module`, with the same options, parameters and
// running statistics, as far as they lie in a Sequential, ModuleList or ModuleDict, at any depth. What of members holds here as
// for nn::convert_dropout: declare them as nn::SyncBatchNorm, which takes libtorch's options too.
void convert_sync_batchnorm(torch::nn::Module& module, ConvertOptions options = {});

// The same for a holder or a shared_ptr, which it returns:
//   DataParallel trainer([] { return nn::convert_sync_batchnorm(make_model()); }, options);
template <training::ModuleHandle M>
M convert_sync_batchnorm(M model, ConvertOptions options = {}) {
  convert_sync_batchnorm(*model, options);
  return model;
}

}  // namespace brigade::nn
