#include "training.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <span>
#include <string>

#include "brigade/base/error.h"
#include "brigade/data/fashion_mnist.h"
#include "brigade/data/loader.h"
#include "brigade/data/normalize.h"
#include "brigade/lax/collectives.h"
#include "brigade/optim/sgd.h"
#include "brigade/transform/pmap.h"

namespace brigade::cli {
namespace {

constexpr std::int64_t kBaseBatch = 64;
constexpr std::int64_t kWarmupSteps = 100;
constexpr std::int64_t kEvaluationRows = 500;  // per device

// The loader folds the epoch into the same key, and there is no such epoch.
constexpr std::int64_t kInitStream = 0xFFFFFFFF;

// What every device holds a copy of.
struct State {
  Parameters parameters;
  Parameters velocity;
};

// What is the same on every device in one step.
struct StepInputs {
  std::int64_t step;
  std::int64_t rows;  // of all devices
  double learning_rate;
};

torch::Tensor summed_loss(const Model& model, const Parameters& parameters, const data::Shard& shard) {
  const auto images = data::normalize(shard.x, data::kFashionMnistMean, data::kFashionMnistStd);
  return torch::cross_entropy_loss(model.forward(parameters, images), shard.y, {}, at::Reduction::Sum);
}

// The own rows' part of the mean loss over all rows, and its gradient. Zero for a device that has no rows.
std::pair<torch::Tensor, Parameters> local_gradient(const Model& model, const Parameters& parameters,
                                                    const data::Shard& shard, std::int64_t rows) {
  if (shard.rows() == 0) {
    return {torch::zeros({}), tree::map([](const torch::Tensor& p) { return torch::zeros_like(p); }, parameters)};
  }
  // Divided by the rows of all devices, so that the sum over devices is the gradient of the mean, uneven shards or not.
  return value_and_grad([&](const Parameters& p) { return summed_loss(model, p, shard) / rows; })(parameters);
}

// Inside a pmap. `where` is for people, who count steps from 1.
void require_finite(double loss, const std::string& where) {
  if (std::isfinite(loss)) return;
  throw NonFiniteError(
      fmt::format("the loss became {} {}. The steps are too long: try --lr at a tenth of what it is", loss, where),
      {.axis = "devices", .device = static_cast<int>(lax::axis_index("devices"))});
}

// One step on one device: gradient of the own shard, sum over devices, the same update everywhere.
std::pair<State, torch::Tensor> step_on_device(const Model& model, const optim::Rule& rule, State state,
                                               const data::Shard& shard, const StepInputs& inputs) {
  auto contribution = local_gradient(model, state.parameters, shard, inputs.rows);
  require_finite(contribution.first.item<double>(),
                 fmt::format("in step {}, at learning rate {:.4g}", inputs.step + 1, inputs.learning_rate));
  const auto [loss, gradient] = lax::psum(std::move(contribution), "devices");
  const at::NoGradGuard no_grad;
  tree::for_each(
      [&](const tree::Path&, const torch::Tensor& p, const torch::Tensor& g, const torch::Tensor& v) {
        rule.update(p, g, std::span(&v, rule.state_names().size()),
                    {.learning_rate = inputs.learning_rate, .index = inputs.step});
      },
      state.parameters, gradient, state.velocity);
  return {std::move(state), loss};
}

// Throws NonFiniteError as well: the last update may have ruined the parameters.
Evaluation evaluate(const Model& model, const Sharded<State>& state, const data::Dataset& test, std::int64_t devices,
                    std::int64_t steps) {
  const auto count = pmap(
      [&](const State& s, const data::Shard& shard) {
        if (shard.rows() == 0) return std::pair<std::int64_t, double>{0, 0.0};
        const at::NoGradGuard no_grad;
        const auto images = data::normalize(shard.x, data::kFashionMnistMean, data::kFashionMnistStd);
        const auto scores = model.forward(s.parameters, images);
        const auto loss = torch::cross_entropy_loss(scores, shard.y, {}, at::Reduction::Sum);
        require_finite(loss.item<double>(), fmt::format("on the test images, after step {}", steps));
        return std::pair(scores.argmax(1).eq(shard.y).sum().item<std::int64_t>(), loss.item<double>());
      },
      {.axis_name = "devices"});
  Evaluation result;
  double loss = 0;
  for (data::Batch& batch : data::Loader(
           test, {.global_batch = kEvaluationRows * devices, .shards = devices, .order = data::Order::kSequential})) {
    result.rows += batch.rows;
    for (const auto& [correct, summed] : count(state, Sharded<data::Shard>(std::move(batch.shards)))) {
      result.correct += correct;
      loss += summed;
    }
  }
  result.loss = loss / static_cast<double>(result.rows);
  return result;
}

}  // namespace

Plan make_plan(const TrainOptions& options, const data::Splits& data) {
  const Model& model = model_named(options.model);
  const std::int64_t devices = device_count();
  const std::int64_t global_batch = devices * options.per_device_batch;
  const std::int64_t epochs = options.epochs.value_or(model.epochs);
  const std::int64_t steps_per_epoch = (data.train.rows() + global_batch - 1) / global_batch;
  const std::int64_t steps = std::min(epochs * steps_per_epoch, options.max_steps.value_or(epochs * steps_per_epoch));
  const auto rate = schedule::linear_scaling({.base = options.learning_rate, .base_batch = kBaseBatch})
                        .warmup(std::min(kWarmupSteps, steps / 2))
                        .cosine(steps);
  return {.model = &model,
          .devices = devices,
          .global_batch = global_batch,
          .epochs = epochs,
          .steps_per_epoch = steps_per_epoch,
          .steps = steps,
          .parameters = count_parameters(model),
          .learning_rate = rate.bind(global_batch)};
}

RunResult train(const TrainOptions& options, const Plan& plan, const data::Splits& data,
                const std::function<void(const StepResult&)>& on_step, const std::function<bool()>& should_stop) {
  const Model& model = *plan.model;
  const optim::Rule rule = optim::sgd({.momentum = options.momentum});
  const Parameters start = init_parameters(model, random::fold_in(random::key(options.seed), kInitStream));
  Sharded<State> state =
      replicate(State{start, tree::map([](const torch::Tensor& p) { return torch::zeros_like(p); }, start)});
  const auto step =
      pmap([&](State s, data::Shard shard,
               const StepInputs& inputs) { return step_on_device(model, rule, std::move(s), shard, inputs); },
           {.axis_name = "devices"});

  RunResult result;
  const auto began = std::chrono::steady_clock::now();
  data::Loader loader(
      data.train,
      {.global_batch = plan.global_batch, .shards = plan.devices, .epochs = plan.epochs, .seed = options.seed});
  while (result.steps < plan.steps && !should_stop()) {
    auto batch = loader.next();
    const StepInputs inputs{
        .step = result.steps, .rows = batch->rows, .learning_rate = plan.learning_rate(result.steps)};
    auto [next, loss] = unzip(step(std::move(state), Sharded<data::Shard>(std::move(batch->shards)), inputs));
    state = std::move(next);
    on_step({.step = inputs.step,
             .epoch = batch->epoch,
             .rows = batch->rows,
             .loss = loss[0].item<double>(),
             .learning_rate = inputs.learning_rate});
    ++result.steps;
    result.rows += batch->rows;
  }
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  result.devices = step.statistics();
  result.test = evaluate(model, state, data.test, plan.devices, result.steps);
  result.interrupted = should_stop();  // in the evaluation as well
  return result;
}

}  // namespace brigade::cli
