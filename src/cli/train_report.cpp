#include "train_report.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "brigade/runtime/device.h"
#include "brigade/runtime/topology.h"

namespace brigade::cli {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_of(std::chrono::nanoseconds time) { return std::chrono::duration<double>(time).count(); }

double samples_per_second(const RunResult& run) {
  return run.seconds > 0 ? static_cast<double>(run.rows) / run.seconds : 0.0;
}

// 1234567 as "1,234,567".
std::string grouped(std::int64_t number) {
  const std::string digits = std::to_string(number);
  std::string text;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) text += ',';
    text += digits[i];
  }
  return text;
}

// 83 seconds as "1:23".
std::string clock_text(double seconds) {
  const auto whole = static_cast<std::int64_t>(std::lround(seconds));
  return whole < 3600 ? fmt::format("{}:{:02}", whole / 60, whole % 60)
                      : fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
}

// Of the terminal on standard output, which may change while we run.
std::size_t terminal_columns() {
  struct winsize size = {};
  return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

// The parts in order, as many as fit into a line that does not wrap.
std::string joined(const std::vector<std::string>& parts, std::size_t columns) {
  std::string line = parts.front().substr(0, columns - 1);
  for (std::size_t i = 1; i < parts.size() && line.size() + 2 + parts[i].size() < columns; ++i) line += "  " + parts[i];
  return line;
}

class TextReport : public TrainReport {
 public:
  explicit TextReport(bool quiet) : quiet_(quiet), on_terminal_(isatty(STDOUT_FILENO) == 1) {}
  ~TextReport() override { close_line(); }  // so that an error's text starts on a line of its own

  void begin(const TrainOptions& options, const Plan& plan, const data::Splits& data) override {
    plan_ = &plan;
    began_ = last_line_ = Clock::now();
    if (quiet_) return;
    fmt::print("Training {} ({}), {} parameters\n", plan.model->name, plan.model->shape, grouped(plan.parameters));
    fmt::print("  data           {} images to train on, {} to test with\n", grouped(data.train.rows()),
               grouped(data.test.rows()));
    fmt::print("  devices        {} on {} core{}, {} thread{} inside operators\n", plan.devices, usable_cores(),
               usable_cores() == 1 ? "" : "s", intra_op_threads(), intra_op_threads() == 1 ? "" : "s");
    fmt::print("  batch          {} rows on each device, {} a step\n", options.per_device_batch,
               grouped(plan.global_batch));
    fmt::print("  steps          {} in {} epoch{}\n", grouped(plan.steps), plan.epochs, plan.epochs == 1 ? "" : "s");
    fmt::print("  learning rate  {}\n", plan.learning_rate.describe());
    fmt::print("  momentum       {:g}\n", options.momentum);
    fmt::print("  all-reduced    {} bytes a step\n\n", grouped(4 * plan.parameters));
    std::fflush(stdout);
  }

  void step(const StepResult& step) override {
    rows_ += step.rows;
    if (quiet_) return;
    const auto now = Clock::now();
    const std::int64_t done = step.step + 1;
    const bool last = done == plan_->steps;
    const bool epoch_ends = done % plan_->steps_per_epoch == 0;
    // A terminal's line is renewed ten times a second; a log gets a line every ten seconds and at the end of an epoch.
    const auto pause = on_terminal_ ? std::chrono::milliseconds(100) : std::chrono::milliseconds(10'000);
    if (now - last_line_ < pause && !last && !(epoch_ends && !on_terminal_)) return;
    last_line_ = now;
    const double elapsed = std::chrono::duration<double>(now - began_).count();
    const double left = elapsed / static_cast<double>(done) * static_cast<double>(plan_->steps - done);
    // What a narrow terminal can do without comes last.
    const std::vector<std::string> parts = {
        fmt::format("step {}/{}", done, plan_->steps),
        fmt::format("loss {:.4f}", step.loss),
        fmt::format("{} left", clock_text(left)),
        fmt::format("{} samples/s", grouped(static_cast<std::int64_t>(static_cast<double>(rows_) / elapsed))),
        fmt::format("rate {:.4g}", step.learning_rate),
        fmt::format("epoch {}/{}", step.epoch + 1, plan_->epochs)};
    if (on_terminal_) {
      fmt::print("\r\033[K{}", joined(parts, terminal_columns()));
      line_open_ = true;
    } else {
      fmt::print("{}\n", joined(parts, std::string::npos));
    }
    std::fflush(stdout);
  }

  void end(const RunResult& run) override {
    close_line();
    if (run.interrupted) fmt::print("Interrupted after step {} of {}.\n", run.steps, plan_->steps);
    fmt::print("\n  test accuracy  {:.4f} ({} of {})\n", run.test.accuracy(), grouped(run.test.correct),
               grouped(run.test.rows));
    fmt::print("  test loss      {:.4f}\n", run.test.loss);
    fmt::print("  throughput     {} samples/s ({} steps in {:.1f} s)\n\n",
               grouped(static_cast<std::int64_t>(samples_per_second(run))), grouped(run.steps), run.seconds);
    fmt::print("  {:<8} {:>12} {:>15} {:>12} {:>12}\n", "device", "compute", "communication", "waiting", "outside");
    for (std::size_t i = 0; i < run.devices.size(); ++i) {
      const DeviceStatistics& d = run.devices[i];
      const auto cell = [&](double seconds, int width) {
        return fmt::format(
            "{:>{}}", fmt::format("{:.2f} s {:3.0f} %", seconds, run.seconds > 0 ? 100 * seconds / run.seconds : 0.0),
            width);
      };
      fmt::print("  {:<8} {} {} {} {}\n", to_string(devices()[i]), cell(seconds_of(d.computing()), 12),
                 cell(seconds_of(d.moving), 15), cell(seconds_of(d.waiting), 12),
                 cell(run.seconds - seconds_of(d.busy), 12));
    }
  }

 private:
  void close_line() {
    if (line_open_) std::putchar('\n');
    line_open_ = false;
  }

  bool quiet_;
  bool on_terminal_;
  bool line_open_ = false;
  const Plan* plan_ = nullptr;
  std::int64_t rows_ = 0;
  Clock::time_point began_;
  Clock::time_point last_line_;
};

class JsonReport : public TrainReport {
 public:
  explicit JsonReport(bool quiet) : quiet_(quiet) {}

  void begin(const TrainOptions& options, const Plan& plan, const data::Splits& data) override {
    began_ = Clock::now();
    if (quiet_) return;
    print({{"event", "begin"},
           {"model", plan.model->name},
           {"parameters", plan.parameters},
           {"train_rows", data.train.rows()},
           {"test_rows", data.test.rows()},
           {"devices", plan.devices},
           {"per_device_batch", options.per_device_batch},
           {"global_batch", plan.global_batch},
           {"epochs", plan.epochs},
           {"steps", plan.steps},
           {"momentum", options.momentum},
           {"seed", options.seed},
           {"learning_rate", plan.learning_rate.describe()}});
  }

  void step(const StepResult& step) override {
    rows_ += step.rows;
    if (quiet_) return;
    print({{"event", "step"},
           {"step", step.step},
           {"epoch", step.epoch},
           {"rows", step.rows},
           {"loss", step.loss},
           {"learning_rate", step.learning_rate},
           {"samples_per_second",
            static_cast<double>(rows_) / std::chrono::duration<double>(Clock::now() - began_).count()}});
  }

  void end(const RunResult& run) override {
    auto devices = nlohmann::json::array();
    for (const DeviceStatistics& d : run.devices) {
      devices.push_back({{"compute_seconds", seconds_of(d.computing())},
                         {"communication_seconds", seconds_of(d.moving)},
                         {"waiting_seconds", seconds_of(d.waiting)}});
    }
    print({{"event", "end"},
           {"test_accuracy", run.test.accuracy()},
           {"test_correct", run.test.correct},
           {"test_rows", run.test.rows},
           {"test_loss", run.test.loss},
           {"steps", run.steps},
           {"seconds", run.seconds},
           {"samples_per_second", samples_per_second(run)},
           {"devices", static_cast<std::int64_t>(run.devices.size())},
           {"per_device", devices},
           {"interrupted", run.interrupted}});
  }

 private:
  static void print(const nlohmann::ordered_json& event) {
    fmt::print("{}\n", event.dump());
    std::fflush(stdout);
  }

  bool quiet_;
  std::int64_t rows_ = 0;
  Clock::time_point began_;
};

}  // namespace

std::unique_ptr<TrainReport> make_report(const TrainOptions& options) {
  if (options.json) return std::make_unique<JsonReport>(options.quiet);
  return std::make_unique<TextReport>(options.quiet);
}

}  // namespace brigade::cli
