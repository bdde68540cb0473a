// What `brigade train` prints: for people, on a terminal or not, or for machines.
#pragma once

#include <memory>

#include "training.h"

namespace brigade::cli {

class TrainReport {
 public:
  virtual ~TrainReport() = default;
  virtual void begin(const TrainOptions& options, const Plan& plan, const data::Splits& data) = 0;
  virtual void step(const StepResult& step) = 0;
  virtual void end(const RunResult& run) = 0;
};

// One JSON object a line with options.json, else text. Of either, options.quiet leaves the end only.
std::unique_ptr<TrainReport> make_report(const TrainOptions& options);

}  // namespace brigade::cli
