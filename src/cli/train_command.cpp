#include <fmt/format.h>

#include <memory>

#include "brigade/optim/schedule_plot.h"
#include "brigade/runtime/device.h"
#include "commands.h"
#include "config_file.h"
#include "interrupt.h"
#include "option_groups.h"
#include "progress_line.h"
#include "train_report.h"
#include "training.h"

namespace brigade::cli {
namespace {

constexpr const char* kDescription =
    "Train a network on all devices of this machine.\n"
    "Example: brigade train --model cnn --devices 2 --epochs 3";

constexpr const char* kExamples =
    "Examples:\n"
    "  brigade train                                             Fashion-MNIST on all devices\n"
    "  brigade train --model resnet18 --data photos/ --image-size 32\n"
    "  brigade train --data iris.csv --label species --epochs 40\n"
    "  brigade train --model transformer --data book.txt --noise-scale-every 10\n"
    "  brigade train --global-batch 512 --logical-shards 8       the same bits on 1 to 8 devices\n"
    "  brigade train --checkpoint-dir run --resume               begins, and goes on whenever it is called again\n"
    "  brigade train --optimizer lamb --schedule linear --print-schedule\n"
    "  brigade train --config run.toml --lr 0.05                 what a file says, but for the rate\n";

Exit print_schedule(const Plan& plan) {
  fmt::print("{}\n\n{}", plan.learning_rate.describe(), schedule::plot(plan.learning_rate, plan.steps));
  return Exit::kSuccess;
}

Exit run(const TrainOptions& options) {
  const Model& model = model_named(options.model);  // before anything that takes time
  if (options.devices.count) set_cpu_devices(*options.devices.count);
  const DataSource data = read_data(options.data, model.task);
  const Plan plan = make_plan(options, data);
  if (options.print_schedule) return print_schedule(plan);

  const auto report = make_report(options);
  Training training(options, plan, data);
  report->begin({.options = options,
                 .plan = plan,
                 .data = data,
                 .parameters = training.parameters(),
                 .parameter_bytes = training.parameter_bytes()});
  catch_interrupts();
  const RunResult result =
      training.run({.on_step = [&](const StepResult& step) { report->step(step); },
                    .on_evaluation = [&](std::int64_t steps, const Evaluation& e) { report->evaluation(steps, e); },
                    .on_resume = [&](std::int64_t steps) { report->resume(steps); }},
                   interrupted);
  report->end(result);
  return result.interrupted ? Exit::kInterrupted : Exit::kSuccess;
}

}  // namespace

Command add_train_command(CLI::App& program) {
  CLI::App* command = program.add_subcommand("train", kDescription);
  command->footer(kExamples);
  const auto options = std::make_shared<TrainOptions>();
  add_model_and_data_options(*command, *options);
  add_batch_options(*command, options->batch);
  add_optimizer_options(*command, options->optimizer);
  add_rate_options(*command, *options);
  add_arithmetic_options(*command, options->arithmetic);
  add_device_options(*command, options->devices);
  add_run_options(*command, *options);
  add_checkpoint_options(*command, options->checkpoint);
  add_safety_options(*command, options->safety);
  add_compression_options(*command, options->compression);
  add_output_options(*command, *options);
  const auto config = std::make_shared<std::string>();
  command
      ->add_option("--config", *config,
                   "TOML or JSON file with any of these options, by the same names; the command line overrides it")
      ->group("Run");
  return [=] {
    if (!config->empty()) apply_config(*command, *config);
    return run(*options);
  };
}

}  // namespace brigade::cli
