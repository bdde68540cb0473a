#include "plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <source_location>

#include "brigade/base/error.h"
#include "brigade/runtime/device.h"
#include "choice.h"
#include "codec_names.h"
#include "optimizer.h"
#include "rate.h"

namespace brigade::cli {
namespace {

constexpr double kMebibyte = 1024.0 * 1024.0;

// The loader folds the epoch into the same key, and there is no such epoch.
constexpr std::int64_t kInitStream = 0xFFFFFFFF;

// On `devices` devices with a given global batch: what the trainer would refuse, in the words of the command line.
void check_global(const BatchOptions& batch, std::int64_t devices) {
  const std::int64_t leaves = batch.logical_shards ? *batch.logical_shards : devices * batch.accumulate.value_or(1);
  if (!batch.global || *batch.global % leaves == 0) return;
  const std::int64_t below = *batch.global / leaves * leaves;
  throw InvalidArgument(fmt::format("--global-batch {} cannot be cut into {} equal parts, one for {}: {}{} can",
                                    *batch.global, leaves,
                                    batch.logical_shards ? "each logical shard" : "each device and micro-batch",
                                    below > 0 ? fmt::format("{} or ", below) : "", below + leaves));
}

void check(const BatchOptions& batch, std::int64_t devices) {
  if (batch.logical_shards && (batch.per_device || batch.accumulate)) {
    throw InvalidArgument(
        fmt::format("{} does not go with --logical-shards, where the rows of a step must not depend on the number of "
                    "devices: give --global-batch",
                    batch.per_device ? "--per-device-batch" : "--accumulate"));
  }
  if (batch.global && batch.per_device) {
    throw InvalidArgument("--global-batch and --per-device-batch say the rows of a step in two ways: give one");
  }
  check_global(batch, devices);
}

void set_batch(training::DataParallelOptions& trainer, const BatchOptions& batch, const Model& model) {
  if (batch.logical_shards) {
    trainer.logical_shards = *batch.logical_shards;
    trainer.global_batch = batch.global.value_or(*batch.logical_shards * model.rows);
    return;
  }
  trainer.accumulate = batch.accumulate.value_or(1);
  if (batch.global) {
    trainer.global_batch = *batch.global;
  } else {
    trainer.per_device_batch = batch.per_device.value_or(model.rows);
  }
}

training::LossScale loss_scale_of(const std::string& text) {
  if (text.empty()) return {};
  if (text == "dynamic") return training::LossScale::dynamic();
  double scale = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), scale);
  if (error == std::errc{} && end == text.data() + text.size() && scale > 0 && std::isfinite(scale)) {
    return {.initial = scale};
  }
  throw InvalidArgument(fmt::format("--loss-scale takes a number above 0, or \"dynamic\", not \"{}\"", text));
}

void set_arithmetic(training::DataParallelOptions& trainer, const ArithmeticOptions& options) {
  trainer.precision = static_cast<training::Precision>(chosen("precision", options.precision, {"float32", "bfloat16"}));
  trainer.non_finite =
      static_cast<training::NonFinite>(chosen("--non-finite rule", options.non_finite, {"stop", "skip"}));
  trainer.loss_scale = loss_scale_of(options.loss_scale);
}

void set_devices(training::DataParallelOptions& trainer, const DeviceOptions& options) {
  trainer.share_parameters = !options.own_parameters;
  trainer.bucket_bytes = static_cast<std::size_t>(std::max(4096.0, options.bucket_mb * kMebibyte));
  trainer.first_bucket_bytes = std::min(trainer.first_bucket_bytes, trainer.bucket_bytes);
}

void set_safety(training::DataParallelOptions& trainer, const SafetyOptions& options) {
  trainer.audit = {.every = options.audit,
                   .on_drift = static_cast<training::OnDrift>(
                       chosen("--on-drift rule", options.on_drift, {"stop", "warn", "heal"}))};
}

NetworkOptions network_options(const TrainOptions& options, const Model& model) {
  if (options.sync_bn && !model.normalises) {
    throw InvalidArgument(
        fmt::format("--sync-bn has no meaning for --model {}, which does not normalise over rows", model.name));
  }
  if (options.dropout && !model.drops) {
    throw InvalidArgument(
        fmt::format("--dropout has no meaning for --model {}: cnn and transformer take it", model.name));
  }
  return {.key = random::fold_in(random::key(options.seed), kInitStream),
          .norm = options.sync_bn ? Norm::kStep : Norm::kLeaf,
          .dropout = options.dropout.value_or(0)};
}

std::string optimizer_text(const Optimizer& optimizer) {
  std::string text = optimizer.rule.describe();
  if (const std::string clip = optimizer.clip.describe(); clip != "off") text += ", gradients clipped " + clip;
  return text;
}

}  // namespace

Plan make_plan(const TrainOptions& options, const DataSource& data) {
  const Model& model = model_named(options.model);
  const Optimizer optimizer = optimizer_for(options.optimizer, model);
  check(options.batch, device_count());

  training::DataParallelOptions trainer = {.optimizer = optimizer.rule,
                                           .groups = optimizer.groups,
                                           .clip = optimizer.clip,
                                           .noise_scale_every = options.noise_scale_every,
                                           .seed = options.seed};
  set_batch(trainer, options.batch, model);
  set_arithmetic(trainer, options.arithmetic);
  set_devices(trainer, options.devices);
  set_safety(trainer, options.safety);
  trainer.compress = {.codec = codec_named(options.compression.codec), .start_step = options.compression.start};
  const training::StepShape step = training::step_shape(trainer, std::source_location::current());

  const std::int64_t steps_per_epoch = (data.splits.train.rows() + step.global_batch() - 1) / step.global_batch();
  const std::int64_t epochs = options.epochs.value_or(model.epochs);
  const std::int64_t steps = std::min(epochs * steps_per_epoch, options.max_steps.value_or(epochs * steps_per_epoch));
  trainer.learning_rate = schedule_for(options.rate, optimizer, steps);
  return {.model = &model,
          .shape = data.shape(),
          .network = network_options(options, model),
          .step = step,
          .epochs = epochs,
          .steps_per_epoch = steps_per_epoch,
          .steps = steps,
          .momentum = optimizer.momentum,
          .optimizer = optimizer_text(optimizer),
          .learning_rate = trainer.learning_rate.bind(step.global_batch()),
          .trainer = trainer};
}

}  // namespace brigade::cli
