#include "training/steps.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>

#include <limits>
#include <memory>
#include <vector>

#include "brigade/train/data_parallel.h"
#include "training/models.h"

namespace brigade::bench {
namespace {

struct RowTree {
  at::Tensor x, y;
};

RowTree first_rows(const Setting& setting, std::int64_t devices) {
  const std::int64_t rows = devices * setting.batch;
  return {setting.start.at("x").narrow(0, 0, rows).clone(), setting.start.at("y").narrow(0, 0, rows).clone()};
}

template <class Net>
Net with_values(Net net, const data::TensorMap& values) {
  const at::NoGradGuard no_grad;
  for (auto& parameter : net->named_parameters()) parameter.value().copy_(values.at(parameter.key()));
  return net;
}

MlpTree tree_of(const data::TensorMap& values) {
  return {.w1 = values.at("f1.weight").t().contiguous(),
          .b1 = values.at("f1.bias"),
          .w2 = values.at("f2.weight").t().contiguous(),
          .b2 = values.at("f2.bias")};
}

struct MeanLoss {
  template <class Rows>
  at::Tensor operator()(const MlpTree& tree, const Rows& rows) const {
    return tree.loss(rows.x, rows.y);
  }
  template <training::ModuleHandle Net, class Rows>
  at::Tensor operator()(Net& net, const Rows& rows) const {
    return net->loss(rows.x, rows.y);
  }
};

DataParallelOptions trainer_options(const Setting& setting, const StepOptions& options) {
  DataParallelOptions result = {.learning_rate = schedule::constant(kLearningRate),
                                .devices = {devices().begin(), devices().begin() + options.devices}};
  if (!options.audit) result.audit = {.every = 0};
  if (options.logical_shards == 0) {
    result.per_device_batch = setting.batch;
  } else {
    result.global_batch = options.devices * setting.batch;
    result.logical_shards = options.logical_shards;
  }
  return result;
}

template <class Factory>
Step step_of(const Setting& setting, const StepOptions& options, Factory factory) {
  using Trainer = DataParallel<std::invoke_result_t<Factory&>>;
  const auto trainer = std::make_shared<Trainer>(factory, trainer_options(setting, options));
  const RowTree rows = first_rows(setting, options.devices);
  if (options.rows == Rows::kCutByStep) return [=] { return trainer->step(rows, MeanLoss()); };
  if (options.rows == Rows::kPrepared) {
    auto loader = trainer->loader({.x = rows.x, .y = rows.y}, {.order = data::Order::kSequential});
    return [trainer, batch = loader.next().value()] { return trainer->step(batch, MeanLoss()); };
  }
  constexpr std::int64_t kBatches = 16;
  const data::Dataset many = {.x = at::cat(std::vector<at::Tensor>(kBatches, rows.x)),
                              .y = at::cat(std::vector<at::Tensor>(kBatches, rows.y))};
  const auto loader =
      std::make_shared<data::Loader>(trainer->loader(many, {.epochs = std::numeric_limits<std::int64_t>::max()}));
  return [=] { return trainer->step(loader->next().value(), MeanLoss()); };
}

}  // namespace

Step our_step(const Setting& setting, StepOptions options) {
  if (options.form == Form::kTree) return step_of(setting, options, [&] { return tree_of(setting.start); });
  return with_network(setting.model, setting.hidden, [&](auto make) {
    return step_of(setting, options, [&] { return with_values(make(), setting.start); });
  });
}

Step plain_step(const Setting& setting, std::int64_t devices) {
  return with_network(setting.model, setting.hidden, [&](auto make) -> Step {
    return [net = with_values(make(), setting.start), rows = first_rows(setting, devices)]() mutable {
      const std::vector<at::Tensor> parameters = net->parameters();
      const at::Tensor loss = MeanLoss()(net, rows);
      const auto gradients = torch::autograd::grad({loss}, parameters);
      const at::NoGradGuard no_grad;
      for (std::size_t i = 0; i < parameters.size(); ++i) parameters[i].sub_(gradients[i], kLearningRate);
      return training::StepReport{.loss = loss.item<double>()};
    };
  });
}

}  // namespace brigade::bench
