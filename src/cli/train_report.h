// What `brigade train` prints: for people, on a terminal or not, or for machines.
#pragma once

#include <memory>

#include "data_source.h"
#include "plan.h"
#include "train_options.h"
#include "training.h"

namespace brigade::cli {

// Of a run before its first step. What it refers to outlives the report.
struct Opening {
  const TrainOptions& options;
  const Plan& plan;
  const DataSource& data;
  std::int64_t parameters;
  std::int64_t parameter_bytes;
};

class TrainReport {
 public:
  virtual ~TrainReport() = default;
  virtual void begin(const Opening& opening) = 0;
  virtual void resume(std::int64_t steps) = 0;  // goes on after so many
  virtual void step(const StepResult& step) = 0;
  virtual void evaluation(std::int64_t steps, const Evaluation& evaluation) = 0;
  virtual void end(const RunResult& run) = 0;
};

// One JSON object a line with options.json, else text. Of either, options.quiet leaves the end only.
std::unique_ptr<TrainReport> make_report(const TrainOptions& options);

std::unique_ptr<TrainReport> make_text_report(bool quiet);
std::unique_ptr<TrainReport> make_json_report(bool quiet);

}  // namespace brigade::cli
