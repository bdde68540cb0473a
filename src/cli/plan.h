// What a run of `brigade train` will do, worked out from the options, the data and the devices before anything is trained.
#pragma once

#include <cstdint>
#include <string>

#include "brigade/optim/schedule.h"
#include "brigade/train/options.h"
#include "brigade/train/trainer.h"
#include "data_source.h"
#include "models/models.h"
#include "train_options.h"

namespace brigade::cli {

struct Plan {
  const Model* model;
  DataShape shape;
  NetworkOptions network;
  training::StepShape step;
  std::int64_t epochs;
  std::int64_t steps_per_epoch;
  std::int64_t steps;
  double momentum;
  std::string optimizer;  // "sgd, momentum 0.9", with what clips
  schedule::LearningRate learning_rate;
  training::DataParallelOptions trainer;

  std::int64_t global_batch() const { return step.global_batch(); }
};

// Throws InvalidArgument, naming the options of the command line, for what does not go together.
Plan make_plan(const TrainOptions& options, const DataSource& data);

}  // namespace brigade::cli
