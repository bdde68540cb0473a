#include "option_groups.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "codec_names.h"
#include "models/models.h"
#include "optimizer.h"
#include "rate.h"

namespace brigade::cli {
namespace {

CLI::Range count() { return CLI::Range(std::int64_t{1}, std::int64_t{1} << 40); }
CLI::Range rows() { return CLI::Range(std::int64_t{1}, std::int64_t{1} << 24); }

std::string list(const std::vector<std::string>& names) { return fmt::format("{}", fmt::join(names, ", ")); }

std::string model_list() {
  std::vector<std::string> models_and_shapes;
  for (const Model& model : models()) models_and_shapes.push_back(fmt::format("{} ({})", model.name, model.shape));
  return fmt::format("{}", fmt::join(models_and_shapes, "; "));
}

}  // namespace

void add_model_and_data_options(CLI::App& command, TrainOptions& options) {
  const std::string group = "Model and data";
  DataOptions& data = options.data;
  command.add_option("--model", options.model, model_list())->capture_default_str()->group(group);
  command
      .add_flag(
          "--sync-bn", options.sync_bn,
          "resnet18 normalises over all rows of a step, where it takes those of a device at once or of a logical shard "
          "otherwise; the activations of all shards of a device are held together then")
      ->group(group);
  command
      .add_option("--dropout", options.dropout,
                  "share of the cnn's hidden layer, or of the transformer's sums, that is dropped (default: 0)")
      ->check(CLI::Range(0.0, 0.99))
      ->group(group);
  command
      .add_option(
          "--data", data.path,
          "fashion-mnist, the default; fortunes, the default for a language model; a folder with MNIST's IDX files, "
          "with a folder of images for each class, or with .txt files; a .csv, .npy, .safetensors or text file")
      ->group(group);
  command
      .add_option(
          "--label", data.label,
          "where the labels are: a CSV file's column, by name or number (default: the last); the NPY file of the "
          "labels; a tensor of the safetensors file (default: labels, or y)")
      ->group(group);
  command
      .add_option("--test-fraction", data.test_fraction,
                  "part of the rows that is held back for testing where there is no test set, the same in every run "
                  "(default: 0.1)")
      ->check(CLI::Range(0.0, 1.0))
      ->group(group);
  command
      .add_option("--image-size", data.image_size,
                  "makes every image of a folder so many pixels wide and high; without it all must have one size")
      ->check(CLI::Range(1, 4096))
      ->group(group);
  command.add_option("--sequence", data.sequence, "bytes of a row of text")
      ->check(CLI::Range(1, 65536))
      ->capture_default_str()
      ->group(group);
}

void add_batch_options(CLI::App& command, BatchOptions& options) {
  const std::string group = "Batch";
  command
      .add_option("--per-device-batch", options.per_device,
                  "rows that each device takes at once (default: 64, for a language model 16)")
      ->check(rows())
      ->group(group);
  command
      .add_option(
          "--accumulate", options.accumulate,
          "times that each device takes its rows before an update, which is then that of all of them (default: 1)")
      ->check(CLI::Range(1, 1 << 16))
      ->group(group);
  command
      .add_option("--global-batch", options.global, "rows of a step over all devices, instead of --per-device-batch")
      ->check(rows())
      ->group(group);
  command
      .add_option("--logical-shards", options.logical_shards,
                  "cuts the rows of a step into so many shards, whoever carries them: the same bits on any number of "
                  "devices up to that")
      ->check(CLI::Range(1, 1 << 16))
      ->group(group);
}

void add_optimizer_options(CLI::App& command, OptimizerOptions& options) {
  const std::string group = "Optimizer";
  command
      .add_option("--optimizer", options.name, list(optimizer_names()) + " (default: sgd, for a language model adamw)")
      ->group(group);
  command
      .add_option("--momentum", options.momentum,
                  "of sgd and lars (default: 0.9) and rmsprop (default: 0), from 0 to below 1")
      ->check(CLI::Range(0.0, 0.9999))
      ->group(group);
  command.add_option("--weight-decay", options.weight_decay, "(default: 0; 0.01 for adamw, 0.0005 for resnet18)")
      ->check(CLI::NonNegativeNumber)
      ->group(group);
  command
      .add_option("--clip", options.clip,
                  "longest norm of all gradients together; 0: any (default: 0, for a language model 1)")
      ->check(CLI::NonNegativeNumber)
      ->group(group);
  command.add_option("--clip-value", options.clip_value, "largest size of each element of a gradient")
      ->check(CLI::PositiveNumber)
      ->group(group);
}

void add_rate_options(CLI::App& command, TrainOptions& options) {
  const std::string group = "Learning rate";
  RateOptions& rate = options.rate;
  command
      .add_option(
          "--lr", rate.rate,
          "rate for steps of 64 rows (default: 0.02 for sgd, 0.001 for adam, adamw and rmsprop, 0.01 for adagrad, 2 "
          "for lars, 0.002 for lamb)")
      ->check(CLI::PositiveNumber)
      ->group(group);
  command
      .add_option("--scale-lr", rate.scaling,
                  list(scaling_names()) +
                      ": how the rate grows with the rows of a step (default: linear for sgd and lars, else sqrt)")
      ->group(group);
  command.add_option("--base-batch", rate.base_batch, "rows of a step that --lr is right for")
      ->check(rows())
      ->capture_default_str()
      ->group(group);
  command.add_option("--schedule", rate.schedule, list(schedule_names()))->capture_default_str()->group(group);
  command
      .add_option("--warmup", rate.warmup,
                  "steps in which the rate rises to its peak (default: 100, or half of the run; 0 for one-cycle)")
      ->check(CLI::Range(std::int64_t{0}, std::int64_t{1} << 40))
      ->group(group);
  command
      .add_option("--schedule-gamma", rate.gamma,
                  "by what step and exponential multiply the rate (default: 0.1 and 0.01)")
      ->check(CLI::PositiveNumber)
      ->group(group);
  command
      .add_option(
          "--schedule-every", rate.every,
          "steps between drops of step (default: a third of the run); steps in which exponential multiplies once "
          "(default: the run)")
      ->check(count())
      ->group(group);
  command.add_option("--schedule-power", rate.power, "of polynomial (default: 2)")
      ->check(CLI::PositiveNumber)
      ->group(group);
  command.add_option("--schedule-to", rate.to, "rate at the end of cosine, linear and polynomial (default: 0)")
      ->check(CLI::NonNegativeNumber)
      ->group(group);
  command.add_flag("--print-schedule", options.print_schedule, "draw the rate over the run, and end")->group(group);
}

void add_arithmetic_options(CLI::App& command, ArithmeticOptions& options) {
  const std::string group = "Arithmetic";
  command.add_option("--precision", options.precision, "of forward and backward: float32, bfloat16")
      ->capture_default_str()
      ->group(group);
  command
      .add_option("--loss-scale", options.loss_scale,
                  "number that the loss is multiplied by before backward, or \"dynamic\": as large as it can be")
      ->group(group);
  command
      .add_option("--non-finite", options.non_finite,
                  "what happens when a loss or gradient is NaN or infinite: stop, or skip the step")
      ->capture_default_str()
      ->group(group);
}

void add_device_options(CLI::App& command, DeviceOptions& options) {
  const std::string group = "Devices";
  command.add_option("--devices", options.count, "devices to train on (default: one per core)")
      ->check(CLI::Range(1, 1024))
      ->group(group);
  command.add_option("--bucket-mb", options.bucket_mb, "mebibytes of gradients that are reduced together")
      ->check(CLI::PositiveNumber)
      ->capture_default_str()
      ->group(group);
  command
      .add_flag("--no-share-parameters", options.own_parameters,
                "a copy of the parameters for each device, where one serves all otherwise")
      ->group(group);
}

void add_checkpoint_options(CLI::App& command, CheckpointOptions& options) {
  const std::string group = "Checkpoints";
  command
      .add_option("--checkpoint-dir", options.folder,
                  "folder for checkpoints of the run, whole at every moment; saved at the end and on Ctrl-C too")
      ->group(group);
  command.add_option("--save-every", options.save_every, "steps between checkpoints (default: each epoch)")
      ->check(count())
      ->group(group);
  command
      .add_option("--keep", options.keep,
                  "newest checkpoints that are kept, besides the one of the best test accuracy (default: 2)")
      ->check(count())
      ->group(group);
  command
      .add_flag("--resume", options.resume,
                "go on from the newest checkpoint of --checkpoint-dir, bit for bit, or begin when there is none")
      ->group(group);
}

void add_safety_options(CLI::App& command, SafetyOptions& options) {
  const std::string group = "Audit";
  command
      .add_option(
          "--audit", options.audit,
          "steps between audits of all parameters and optimizer state for memory that changed by itself; 0: never")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str()
      ->group(group);
  command
      .add_option("--on-drift", options.on_drift,
                  "what follows when some did: stop, warn, or heal, which puts it back where that can be known")
      ->capture_default_str()
      ->group(group);
}

void add_compression_options(CLI::App& command, CompressionOptions& options) {
  const std::string group = "Compression";
  command
      .add_option("--compress", options.codec,
                  "codec that gradients pass through before they are summed, for experiments: " + codec_list())
      ->capture_default_str()
      ->group(group);
  command.add_option("--compress-start", options.start, "first step that is compressed")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str()
      ->group(group);
}

void add_run_options(CLI::App& command, TrainOptions& options) {
  const std::string group = "Run";
  command
      .add_option("--epochs", options.epochs,
                  "passes over the training data (default: 5 for mlp, 3 for cnn and resnet18, 1 for transformer)")
      ->check(count())
      ->group(group);
  command
      .add_option("--max-steps", options.max_steps,
                  "end after this many steps if the epochs have more; the schedule ends there too")
      ->check(count())
      ->group(group);
  command
      .add_option("--eval-every", options.eval_every, "steps between looks at the test data (default: at the end only)")
      ->check(count())
      ->group(group);
  command
      .add_option("--noise-scale-every", options.noise_scale_every,
                  "steps between measurements of the gradient noise scale, in rows: larger batches stop paying there "
                  "(default: never)")
      ->check(count())
      ->group(group);
  command
      .add_option("--seed", options.seed,
                  "of the start and of the order of the data, 0 to 4294967295: the same seed gives the same bits")
      ->check(CLI::Range(std::int64_t{0}, std::int64_t{0xFFFFFFFF}))
      ->capture_default_str()
      ->group(group);
}

void add_output_options(CLI::App& command, TrainOptions& options) {
  const std::string group = "Output";
  command
      .add_flag(
          "--json", options.json,
          "print one JSON object a line, the last of them {\"event\": \"end\", ...}; \"step\" and \"epoch\" count from "
          "0 there")
      ->group(group);
  command.add_flag("--quiet", options.quiet, "print the final table only, or with --json its last object only")
      ->group(group);
}

}  // namespace brigade::cli
