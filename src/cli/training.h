// A training run of `brigade train`: the steps that its plan says, and the evaluations.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "brigade/runtime/axis.h"
#include "brigade/train/step_report.h"
#include "data_source.h"
#include "plan.h"
#include "train_options.h"

namespace brigade::cli {

struct Evaluation {
  std::int64_t rows = 0;
  std::int64_t answers = 0;  // one a row, or one a byte
  std::int64_t correct = 0;
  double loss = 0;  // mean over answers

  double accuracy() const { return static_cast<double>(correct) / static_cast<double>(answers); }
  double perplexity() const;
};

struct StepResult {
  std::int64_t epoch;
  double seconds;  // of training until now
  const training::StepReport& report;
};

struct RunResult {
  std::int64_t steps = 0;    // of the whole run
  std::int64_t resumed = 0;  // of them, those of an earlier call
  std::int64_t skipped = 0;  // of them, as their numbers were not finite
  std::int64_t rows = 0;
  double seconds = 0;  // of training, without evaluation
  bool interrupted = false;
  training::StepTimes times = {};         // summed over the steps, of the slowest device in each
  std::vector<DeviceStatistics> devices;  // of the training steps
  Evaluation test;
  std::string checkpoint = {};  // folder where the last one lies

  double samples_per_second() const { return seconds > 0 ? static_cast<double>(rows) / seconds : 0; }
  // The share of all devices' time in which they computed.
  double efficiency() const;
};

struct Listener {
  std::function<void(const StepResult&)> on_step;
  std::function<void(std::int64_t steps, const Evaluation&)> on_evaluation;  // of those before the last
  std::function<void(std::int64_t steps)> on_resume;                         // goes on after so many
};

class Training {
 public:
  // Makes the network, once for each device. `plan` and `data` outlive it.
  Training(const TrainOptions& options, const Plan& plan, const DataSource& data);
  ~Training();
  Training(const Training&) = delete;
  Training& operator=(const Training&) = delete;

  std::int64_t parameters() const;
  std::int64_t parameter_bytes() const;

  // Trains and evaluates. `should_stop` is asked before each step and after the last evaluation. Throws NonFiniteError, naming
  // step (from 1) and device, when a loss is NaN or infinite and such steps are not skipped.
  RunResult run(const Listener& listener, const std::function<bool()>& should_stop);

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace brigade::cli
