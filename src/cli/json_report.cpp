#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "brigade/runtime/arithmetic.h"
#include "train_report.h"

namespace brigade::cli {
namespace {

using Object = nlohmann::ordered_json;

double seconds_of(std::chrono::nanoseconds time) { return std::chrono::duration<double>(time).count(); }

class JsonReport : public TrainReport {
 public:
  explicit JsonReport(bool quiet) : quiet_(quiet) {}

  void begin(const Opening& opening) override {
    const Plan& plan = opening.plan;
    is_text_ = plan.model->task == Task::kNextByte;
    if (quiet_) return;
    Object machine;  // runs with the same can be compared bit for bit
    for (const auto& [name, value] : arithmetic()) machine[name] = value;
    print({{"event", "begin"},
           {"model", plan.model->name},
           {"parameters", opening.parameters},
           {"parameter_bytes", opening.parameter_bytes},
           {"data", opening.data.name},
           {"train_rows", opening.data.splits.train.rows()},
           {"test_rows", opening.data.splits.test.rows()},
           {"classes", plan.shape.classes},
           {"devices", plan.step.devices},
           {"per_device_batch", (plan.global_batch() + plan.step.devices - 1) / plan.step.devices},
           {"global_batch", plan.global_batch()},
           {"leaves", plan.step.leaves},
           {"rows_per_leaf", plan.step.rows_per_leaf},
           {"logical_shards", plan.trainer.logical_shards},
           {"epochs", plan.epochs},
           {"steps", plan.steps},
           {"optimizer", plan.optimizer},
           {"momentum", plan.momentum},
           {"precision", opening.options.arithmetic.precision},
           {"seed", opening.options.seed},
           {"arithmetic", machine},
           {"learning_rate", plan.learning_rate.describe()}});
  }

  void resume(std::int64_t steps) override {
    if (!quiet_) print({{"event", "resume"}, {"steps", steps}});
  }

  void step(const StepResult& step) override {
    rows_ += step.report.rows;
    if (quiet_) return;
    const training::StepReport& report = step.report;
    Object event = {{"event", "step"},
                    {"step", report.step},
                    {"epoch", step.epoch},
                    {"rows", report.rows},
                    {"loss", report.loss},
                    {"learning_rate", report.learning_rate},
                    {"gradient_norm", report.gradient_norm},
                    {"clip_factor", report.clip_factor},
                    {"loss_scale", report.loss_scale},
                    {"skipped", report.skipped},
                    {"samples_per_second", step.seconds > 0 ? static_cast<double>(rows_) / step.seconds : 0.0}};
    if (report.noise_scale) event["noise_scale"] = *report.noise_scale;
    if (!report.healed.empty()) event["healed"] = report.healed;
    if (report.compression) {
      event["compression"] = {{"wire_bytes", report.compression->wire_bytes},
                              {"uncompressed_bytes", report.compression->uncompressed_bytes},
                              {"relative_error", report.compression->relative_error}};
    }
    // As text, since numbers of JSON are doubles to most readers.
    if (report.digest) event["digest"] = fmt::format("{:016x}", *report.digest);
    print(event);
  }

  void evaluation(std::int64_t steps, const Evaluation& evaluation) override {
    if (quiet_) return;
    Object event = {{"event", "evaluation"}, {"steps", steps}};
    add(event, evaluation);
    print(event);
  }

  void end(const RunResult& run) override {
    Object event = {{"event", "end"}};
    add(event, run.test);
    event["steps"] = run.steps;
    event["resumed_steps"] = run.resumed;
    if (!run.checkpoint.empty()) event["checkpoint"] = run.checkpoint;
    event["skipped_steps"] = run.skipped;
    event["seconds"] = run.seconds;
    event["samples_per_second"] = run.samples_per_second();
    event["efficiency"] = run.efficiency();
    event["times"] = {{"data_seconds", seconds_of(run.times.data)},
                      {"forward_seconds", seconds_of(run.times.forward)},
                      {"backward_seconds", seconds_of(run.times.backward)},
                      {"waiting_seconds", seconds_of(run.times.communication)},
                      {"update_seconds", seconds_of(run.times.update)}};
    event["devices"] = run.devices.size();
    event["per_device"] = Object::array();
    for (const DeviceStatistics& device : run.devices) {
      event["per_device"].push_back({{"compute_seconds", seconds_of(device.computing())},
                                     {"communication_seconds", seconds_of(device.moving)},
                                     {"waiting_seconds", seconds_of(device.waiting)}});
    }
    event["interrupted"] = run.interrupted;
    print(event);
  }

 private:
  void add(Object& event, const Evaluation& test) const {
    event["test_accuracy"] = test.accuracy();
    event["test_correct"] = test.correct;
    event["test_rows"] = test.rows;
    event["test_loss"] = test.loss;
    if (is_text_) event["test_perplexity"] = test.perplexity();
  }

  static void print(const Object& event) {
    fmt::print("{}\n", event.dump());
    std::fflush(stdout);
  }

  bool quiet_;
  bool is_text_ = false;
  std::int64_t rows_ = 0;
};

}  // namespace

std::unique_ptr<TrainReport> make_json_report(bool quiet) { return std::make_unique<JsonReport>(quiet); }

}  // namespace brigade::cli
