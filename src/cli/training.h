// A training run of `brigade train`: what it is to do, one step, and the evaluation.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "brigade/data/dataset.h"
#include "brigade/optim/schedule.h"
#include "brigade/runtime/axis.h"
#include "model.h"

namespace brigade::cli {

struct TrainOptions {
  std::string model = "mlp";
  std::optional<int> devices = {};  // default: all
  std::int64_t per_device_batch = 64;
  double learning_rate = 0.02;  // at 64 rows a step; scaled with the rows of a step
  double momentum = 0.9;
  std::optional<std::int64_t> epochs = {};     // default: the model's
  std::optional<std::int64_t> max_steps = {};  // at most; the learning rate ends there too
  std::int64_t seed = 0;                       // below 2^32, all that a key takes
  std::string data = {};                       // folder; default: the Debian package's
  bool json = false;
  bool quiet = false;
};

// What a run will do, worked out from the options, the data and the devices.
struct Plan {
  const Model* model;
  std::int64_t devices;
  std::int64_t global_batch;
  std::int64_t epochs;
  std::int64_t steps_per_epoch;
  std::int64_t steps;
  std::int64_t parameters;
  schedule::LearningRate learning_rate;
};

struct StepResult {
  std::int64_t step;  // completed before this one
  std::int64_t epoch;
  std::int64_t rows;
  double loss;  // mean over the rows of all devices, before the update
  double learning_rate;
};

struct Evaluation {
  std::int64_t correct = 0;
  std::int64_t rows = 0;
  double loss = 0;  // mean over rows

  double accuracy() const { return static_cast<double>(correct) / static_cast<double>(rows); }
};

struct RunResult {
  std::int64_t steps = 0;
  std::int64_t rows = 0;
  double seconds = 0;  // of training, without evaluation
  bool interrupted = false;
  std::vector<DeviceStatistics> devices;  // of the training steps
  Evaluation test;
};

Plan make_plan(const TrainOptions& options, const data::Splits& data);

// Trains and evaluates; `on_step` is called after every step. `should_stop` is asked before each step and
// after the evaluation. Throws NonFiniteError, naming step (from 1) and device, when a loss is NaN or infinite.
RunResult train(const TrainOptions& options, const Plan& plan, const data::Splits& data,
                const std::function<void(const StepResult&)>& on_step, const std::function<bool()>& should_stop);

}  // namespace brigade::cli
