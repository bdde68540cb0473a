#include <memory>

#include "brigade/data/fashion_mnist.h"
#include "brigade/runtime/device.h"
#include "commands.h"
#include "interrupt.h"
#include "train_report.h"
#include "training.h"

namespace brigade::cli {
namespace {

std::string model_list() {
  std::string list;
  for (const Model& model : models()) list += (list.empty() ? "" : ", ") + model.name + " (" + model.shape + ")";
  return list;
}

Exit run(const TrainOptions& options) {
  model_named(options.model);  // before anything that takes time
  if (options.devices) set_cpu_devices(*options.devices);
  const data::Splits data = data::fashion_mnist(options.data);
  const Plan plan = make_plan(options, data);
  const auto report = make_report(options);
  report->begin(options, plan, data);
  catch_interrupts();
  const RunResult result = train(
      options, plan, data, [&](const StepResult& step) { report->step(step); }, interrupted);
  report->end(result);
  return result.interrupted ? Exit::kInterrupted : Exit::kSuccess;
}

}  // namespace

Command add_train_command(CLI::App& program) {
  CLI::App* command = program.add_subcommand("train",
                                             "Train a network on Fashion-MNIST, on all devices of this machine.\n"
                                             "Example: brigade train --model cnn --devices 2 --epochs 3");
  const auto options = std::make_shared<TrainOptions>();
  const CLI::Range count(std::int64_t{1}, std::int64_t{1} << 40);
  command->add_option("--model", options->model, model_list())->capture_default_str();
  command->add_option("--devices", options->devices, "devices to train on; default: one per core")
      ->check(CLI::Range(1, 1024));
  command->add_option("--per-device-batch", options->per_device_batch, "rows that each device takes in a step")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  command
      ->add_option("--lr", options->learning_rate,
                   "learning rate for steps of 64 rows; scaled in proportion to the rows of a step")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command->add_option("--momentum", options->momentum, "of stochastic gradient descent, from 0 to below 1")
      ->check(CLI::Range(0.0, 0.9999))
      ->capture_default_str();
  command->add_option("--epochs", options->epochs, "passes over the training data; default: 5 for mlp, 3 for cnn")
      ->check(count);
  command
      ->add_option("--max-steps", options->max_steps,
                   "end after this many steps if the epochs have more; the learning rate falls to zero there")
      ->check(count);
  command
      ->add_option("--seed", options->seed,
                   "of the start and of the order of the data, 0 to 4294967295: the same seed gives the same bits")
      ->check(CLI::Range(std::int64_t{0}, std::int64_t{0xFFFFFFFF}))
      ->capture_default_str();
  command->add_option("--data", options->data,
                      "folder with Fashion-MNIST's four IDX files, plain or .gz; default: Debian's package");
  command->add_flag("--json", options->json,
                    "print one JSON object a line, the last of them {\"event\": \"end\", ...}; \"step\" and \"epoch\" "
                    "count from 0 there");
  command->add_flag("--quiet", options->quiet, "print the final table only, or with --json its last object only");
  return [options] { return run(*options); };
}

}  // namespace brigade::cli
