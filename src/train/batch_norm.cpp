#include "brigade/train/batch_norm.h"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/nn/modules/batchnorm.h>

#include <ostream>

#include "batch_statistics.h"
#include "brigade/base/error.h"
#include "brigade/runtime/axis.h"
#include "brigade/train/leaf.h"
#include "brigade/train/leaf_sum.h"
#include "module_places.h"
#include "running_statistics.h"

namespace brigade::nn {
namespace {

using training::BatchStatistics;
using training::LeafGroup;
using training::RunningStatistics;
using training::RunningUpdate;

BatchNormOptions options_of(const torch::nn::BatchNormOptions& options, std::int64_t group) {
  const c10::optional<double> momentum = options.momentum();
  return {.eps = options.eps(),
          .momentum = momentum ? std::make_optional(*momentum) : std::nullopt,
          .affine = options.affine(),
          .track_running_stats = options.track_running_stats(),
          .group = group};
}

void check(std::int64_t features, const BatchNormOptions& options) {
  if (features < 1) throw InvalidArgument(fmt::format("nn::SyncBatchNorm of {} features; give 1 or more", features));
  if (options.group < 0) {
    throw InvalidArgument(fmt::format(
        "nn::SyncBatchNorm: group is {}; give the number of leaves that are normalised together, or 0 for all of them",
        options.group));
  }
}

void check_input(const at::Tensor& x, std::int64_t features) {
  if (x.dim() < 2 || x.dim() > 5 || x.size(1) != features) {
    throw ShapeError(fmt::format(
        "nn::SyncBatchNorm of {0} features: x is [{1}]; give [N, {0}], or up to three more dimensions after them",
        features, fmt::join(x.sizes(), ", ")));
  }
  if (!at::isFloatingType(x.scalar_type())) {
    throw ShapeError(
        fmt::format("nn::SyncBatchNorm: x is {}; give a floating-point tensor", c10::toString(x.scalar_type())));
  }
}

// Statistics of every group of the devices of a pmap, by adding them up from places of their own: all devices get the same.
void apply_groups_of_body(const RunningUpdate& own, std::int64_t size) {
  const AxisPlace place = place_of_body(std::source_location::current());
  const std::int64_t groups = (place.size() + size - 1) / size;
  at::Tensor means = at::zeros({groups, own.mean.size(0)}, own.mean.options());
  at::Tensor variances = at::zeros_like(means);
  if (place.rank() % size == 0) {
    means[place.rank() / size].copy_(own.mean);
    variances[place.rank() / size].copy_(own.unbiased_variance);
  }
  const auto all = training::leaf_sum({means, variances}, {.tag = "running statistics"});
  for (std::int64_t group = 0; group < groups; ++group) {
    RunningUpdate update = own;
    update.mean = all[0][group];
    update.unbiased_variance = all[1][group];
    update.apply();
  }
}

// One leaf of a group speaks for all, and a recomputation has spoken already.
void track(RunningUpdate update, LeafGroup group) {
  if (training::recomputes()) return;
  if (RunningStatistics::is_recording()) {
    const std::int64_t leaf = training::leaf_index();
    if (group.size == 0 ? leaf == 0 : leaf % group.size == 0) RunningStatistics::record(std::move(update));
  } else if (inside_body() && group.size > 0) {
    apply_groups_of_body(update, group.size);
  } else {
    update.apply();
  }
}

}  // namespace

BatchNormImpl::BatchNormImpl(std::int64_t features, BatchNormOptions options) : features_(features), options_(options) {
  check(features, options);
  BatchNormImpl::reset();
}

BatchNormImpl::BatchNormImpl(std::int64_t features, BatchNormOptions options, Tensors tensors)
    : features_(features), options_(options) {
  check(features, options);
  adopt(std::move(tensors));
}

BatchNormImpl::BatchNormImpl(const torch::nn::BatchNormOptions& options)
    : BatchNormImpl(options.num_features(), options_of(options, 0)) {}

void BatchNormImpl::reset() {
  Tensors tensors;
  if (options_.affine) {
    tensors.weight = at::ones({features_}).requires_grad_();
    tensors.bias = at::zeros({features_}).requires_grad_();
  }
  if (options_.track_running_stats) {
    tensors.running_mean = at::zeros({features_});
    tensors.running_var = at::ones({features_});
    tensors.num_batches_tracked = at::zeros({}, at::kLong);
  }
  adopt(std::move(tensors));
}

void BatchNormImpl::adopt(Tensors tensors) {
  const auto trains = [](const at::Tensor& tensor) { return tensor.defined() && tensor.requires_grad(); };
  weight = register_parameter("weight", tensors.weight, trains(tensors.weight));
  bias = register_parameter("bias", tensors.bias, trains(tensors.bias));
  running_mean = register_buffer("running_mean", tensors.running_mean);
  running_var = register_buffer("running_var", tensors.running_var);
  num_batches_tracked = register_buffer("num_batches_tracked", tensors.num_batches_tracked);
}

at::Tensor BatchNormImpl::forward(const at::Tensor& x) {
  check_input(x, features_);
  if (!is_training() && running_mean.defined()) {
    return at::batch_norm(x, weight, bias, running_mean, running_var, /*training=*/false, /*momentum=*/0, options_.eps,
                          /*cudnn_enabled=*/false);
  }
  const at::Tensor plain = x.scalar_type() == at::kDouble ? x : x.to(at::kFloat);
  const LeafGroup group = {.size = is_training() ? options_.group : 1};
  const BatchStatistics statistics = training::batch_statistics(plain, group);
  if (is_training() && statistics.count < 2) {
    throw InvalidArgument(
        "batch normalization of one value a channel: its variance says nothing. Give the last batch of an epoch more "
        "rows, or "
        "normalise more leaves together (.group)");
  }
  if (is_training() && running_mean.defined()) {
    track({.running_mean = running_mean,
           .running_var = running_var,
           .batches = num_batches_tracked,
           .momentum = options_.momentum,
           .mean = statistics.mean,
           .unbiased_variance = statistics.unbiased_variance()},
          group);
  }
  return training::normalize(plain, weight, bias, statistics, options_.eps, group).to(x.scalar_type());
}

void BatchNormImpl::pretty_print(std::ostream& stream) const {
  stream << (options_.group == 1 ? "brigade::nn::GhostBatchNorm(" : "brigade::nn::SyncBatchNorm(") << features_
         << ", eps=" << options_.eps << ", momentum=";
  if (options_.momentum) {
    stream << *options_.momentum;
  } else {
    stream << "none";
  }
  stream << ", affine=" << std::boolalpha << options_.affine
         << ", track_running_stats=" << options_.track_running_stats;
  if (options_.group > 1) stream << ", group=" << options_.group;
  stream << ")";
}

void convert_sync_batchnorm(torch::nn::Module& module, ConvertOptions options) {
  const auto like = [&](const auto& old) {
    return torch::nn::AnyModule(std::make_shared<BatchNormImpl>(
        old.options.num_features(), options_of(old.options, options.group),
        BatchNormImpl::Tensors{old.weight, old.bias, old.running_mean, old.running_var, old.num_batches_tracked}));
  };
  const auto replacement = [&](const torch::nn::Module& one) {
    if (const auto* old = training::exactly<torch::nn::BatchNorm1dImpl>(one)) return like(*old);
    if (const auto* old = training::exactly<torch::nn::BatchNorm2dImpl>(one)) return like(*old);
    if (const auto* old = training::exactly<torch::nn::BatchNorm3dImpl>(one)) return like(*old);
    return torch::nn::AnyModule();
  };
  training::replace_modules(module, {.converter = "nn::convert_sync_batchnorm", .declare_as = "nn::SyncBatchNorm"},
                            replacement);
}

}  // namespace brigade::nn
