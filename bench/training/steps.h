// Our ways to take a training step, and a plain loop.
#pragma once

#include <cstdint>
#include <functional>

#include "brigade/train/step_report.h"
#include "training/setting.h"

namespace brigade::bench {

// Each call takes one step. The loss in its report is that of its rows before the update.
using Step = std::function<training::StepReport()>;

// The model as a torch::nn module, or as a tree of parameters; only the mlp is there as both.
enum class Form { kModule, kTree };

// Where a step's rows come from.
enum class Rows {
  kPrepared,  // one batch that trainer.loader() has handed out, cut into leaves already: the step alone, as in a real loop
  kCutByStep,  // one tree of tensors, cut into leaves by the step
  kLoaded,     // a new batch each step, shuffled and cut by the loader's thread meanwhile
};

struct StepOptions {
  std::int64_t devices = 0;         // as many rows each as the setting says: the first of its rows
  std::int64_t logical_shards = 0;  // 0: one leaf on each device
  Form form = Form::kModule;
  Rows rows = Rows::kPrepared;
  bool audit = true;
};

// Of a DataParallel.
Step our_step(const Setting& setting, StepOptions options);

// One forward and backward over the rows of so many devices, in the calling thread, by libtorch alone.
Step plain_step(const Setting& setting, std::int64_t devices);

}  // namespace brigade::bench
