#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "brigade/runtime/device.h"
#include "brigade/runtime/topology.h"
#include "progress_line.h"
#include "text.h"
#include "train_report.h"

namespace brigade::cli {
namespace {

double seconds_of(std::chrono::nanoseconds time) { return std::chrono::duration<double>(time).count(); }

std::string share(double seconds, double whole) {
  return fmt::format("{:.2f} s {:3.0f} %", seconds, whole > 0 ? 100 * seconds / whole : 0.0);
}

std::string test_text(const Evaluation& test, bool is_text) {
  return is_text ? fmt::format("test perplexity {:.3f} a byte", test.perplexity())
                 : fmt::format("test accuracy {:.4f}", test.accuracy());
}

std::string batch_text(const Plan& plan) {
  const training::StepShape& step = plan.step;
  if (plan.trainer.logical_shards > 0) {
    return fmt::format("{} rows a step, in {} logical shards of {}: the same bits on up to {} devices",
                       grouped(plan.global_batch()), step.leaves, step.rows_per_leaf, step.leaves);
  }
  const std::string times = plan.trainer.accumulate > 1 ? fmt::format(", {} times", plan.trainer.accumulate) : "";
  return fmt::format("{} rows on each device{}, {} a step", step.rows_per_leaf, times, grouped(plan.global_batch()));
}

std::string audit_text(const training::Audit& audit) {
  if (audit.every == 0) return "off";
  return audit.every == 1 ? "of all memory at every step" : fmt::format("of all memory at every {} steps", audit.every);
}

class TextReport : public TrainReport {
 public:
  explicit TextReport(bool quiet) : quiet_(quiet) {}

  void begin(const Opening& opening) override {
    plan_ = &opening.plan;
    is_text_ = plan_->model->task == Task::kNextByte;
    if (quiet_) return;
    const Plan& plan = opening.plan;
    const DataSource& data = opening.data;
    fmt::print("Training {} ({}), {} parameters\n", plan.model->name, plan.model->shape, grouped(opening.parameters));
    fmt::print("  data           {}: {} {} to train on, {} to test with ({})\n", data.name,
               grouped(data.splits.train.rows()), data.rows, grouped(data.splits.test.rows()), data.test_from);
    fmt::print("  devices        {} on {}, {} inside operators\n", plan.step.devices, counted(usable_cores(), "core"),
               counted(intra_op_threads(), "thread"));
    fmt::print("  batch          {}\n", batch_text(plan));
    fmt::print("  steps          {} in {}\n", grouped(plan.steps), counted(plan.epochs, "epoch"));
    fmt::print("  learning rate  {}\n", plan.learning_rate.describe());
    fmt::print("  optimizer      {}\n", plan.optimizer);
    if (opening.options.arithmetic.precision != "float32") {
      fmt::print("  precision      {} in forward and backward\n", opening.options.arithmetic.precision);
    }
    if (plan.trainer.compress.codec) fmt::print("  compression    {}\n", plan.trainer.compress.codec.describe());
    fmt::print("  audit          {}\n", audit_text(plan.trainer.audit));
    fmt::print("  all-reduced    {} bytes a step\n\n", grouped(opening.parameter_bytes));
    std::fflush(stdout);
  }

  void resume(std::int64_t steps) override {
    resumed_ = steps;
    if (!quiet_) fmt::print("Going on after step {} of {}.\n", grouped(steps), grouped(plan_->steps));
  }

  void step(const StepResult& step) override {
    rows_ += step.report.rows;
    if (quiet_) return;
    const std::int64_t done = step.report.step + 1;
    const bool epoch_ends = done % plan_->steps_per_epoch == 0;
    if (!line_.is_due() && done != plan_->steps && !(epoch_ends && !line_.on_terminal())) return;
    line_.show(parts(step, done));
  }

  void evaluation(std::int64_t steps, const Evaluation& evaluation) override {
    if (quiet_) return;
    line_.close();
    fmt::print("after step {}: {}, loss {:.4f}\n", steps, test_text(evaluation, is_text_), evaluation.loss);
    std::fflush(stdout);
  }

  void end(const RunResult& run) override {
    line_.close();
    if (run.interrupted) fmt::print("Interrupted after step {} of {}.\n", run.steps, plan_->steps);
    if (run.skipped > 0) fmt::print("{} left out, as their numbers were not finite.\n", counted(run.skipped, "step"));
    if (is_text_) {
      fmt::print("\n  test perplexity {:.3f} a byte ({:.3f} bits)\n", run.test.perplexity(),
                 run.test.loss / std::log(2.0));
    }
    fmt::print("{}  test accuracy  {:.4f} ({} of {})\n", is_text_ ? "" : "\n", run.test.accuracy(),
               grouped(run.test.correct), grouped(run.test.answers));
    fmt::print("  test loss      {:.4f}\n", run.test.loss);
    fmt::print("  throughput     {} samples/s ({} in {:.1f} s)\n",
               grouped(static_cast<std::int64_t>(run.samples_per_second())), counted(run.steps - run.resumed, "step"),
               run.seconds);
    fmt::print("  efficiency     {:.0f} % of the devices' time was computing\n\n", 100 * run.efficiency());
    if (!run.checkpoint.empty())
      fmt::print("  checkpoint     of step {} in {}\n\n", grouped(run.steps), run.checkpoint);
    print_phases(run);
    print_devices(run);
  }

 private:
  // What a narrow terminal can do without comes last.
  std::vector<std::string> parts(const StepResult& step, std::int64_t done) const {
    const training::StepReport& report = step.report;
    const double left = step.seconds / static_cast<double>(done - resumed_) * static_cast<double>(plan_->steps - done);
    const double rate = step.seconds > 0 ? static_cast<double>(rows_) / step.seconds : 0;
    std::vector<std::string> all = {fmt::format("step {}/{}", done, plan_->steps),
                                    fmt::format("loss {:.4f}", report.loss), fmt::format("{} left", clock_text(left)),
                                    fmt::format("{} samples/s", grouped(static_cast<std::int64_t>(rate))),
                                    fmt::format("rate {:.4g}", report.learning_rate)};
    if (report.noise_scale) all.push_back(fmt::format("noise scale {:.0f}", *report.noise_scale));
    all.push_back(fmt::format("epoch {}/{}", step.epoch + 1, plan_->epochs));
    return all;
  }

  // Of the slowest device in each step.
  static void print_phases(const RunResult& run) {
    const training::StepTimes& times = run.times;
    const double named = seconds_of(times.data + times.forward + times.backward + times.communication + times.update);
    const std::vector<std::pair<const char*, double>> phases = {
        {"data", seconds_of(times.data)},         {"forward", seconds_of(times.forward)},
        {"backward", seconds_of(times.backward)}, {"waiting", seconds_of(times.communication)},
        {"update", seconds_of(times.update)},     {"other", std::max(0.0, run.seconds - named)}};
    std::string head = fmt::format("  {:<8}", "phase");
    std::string line = fmt::format("  {:<8}", "time");
    for (const auto& [name, seconds] : phases) {
      head += fmt::format(" {:>14}", name);
      line += fmt::format(" {:>14}", share(seconds, run.seconds));
    }
    fmt::print("{}\n{}\n\n", head, line);
  }

  static void print_devices(const RunResult& run) {
    fmt::print("  {:<8} {:>14} {:>14} {:>14} {:>14}\n", "device", "compute", "communication", "waiting", "outside");
    for (std::size_t i = 0; i < run.devices.size(); ++i) {
      const DeviceStatistics& d = run.devices[i];
      fmt::print("  {:<8} {:>14} {:>14} {:>14} {:>14}\n", to_string(devices()[i]),
                 share(seconds_of(d.computing()), run.seconds), share(seconds_of(d.moving), run.seconds),
                 share(seconds_of(d.waiting), run.seconds), share(run.seconds - seconds_of(d.busy), run.seconds));
    }
  }

  bool quiet_;
  std::int64_t resumed_ = 0;  // steps of an earlier call
  bool is_text_ = false;
  const Plan* plan_ = nullptr;
  std::int64_t rows_ = 0;
  ProgressLine line_;
};

}  // namespace

std::unique_ptr<TrainReport> make_text_report(bool quiet) { return std::make_unique<TextReport>(quiet); }

std::unique_ptr<TrainReport> make_report(const TrainOptions& options) {
  return options.json ? make_json_report(options.quiet) : make_text_report(options.quiet);
}

}  // namespace brigade::cli
