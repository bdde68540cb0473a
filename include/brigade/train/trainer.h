// The training step behind DataParallel, for models of any kind: shard, forward, backward with the reduction inside, update.
//
// Programs use data_parallel.h, which knows the model's type and the batch's.
#pragma once

#include <c10/util/FunctionRef.h>

#include <cstdint>
#include <memory>
#include <source_location>
#include <string>
#include <vector>

#include "brigade/data/sampler.h"
#include "brigade/runtime/axis.h"
#include "brigade/train/loss.h"
#include "brigade/train/options.h"
#include "brigade/train/replica.h"
#include "brigade/train/resume.h"
#include "brigade/train/step_report.h"

namespace brigade::training {

// How many rows a step has and how they are cut; what the options say, with everything that follows from them.
struct StepShape {
  std::int64_t devices = 0;
  std::int64_t leaves = 0;  // of a whole step
  std::int64_t rows_per_leaf = 0;
  std::int64_t global_batch() const noexcept { return leaves * rows_per_leaf; }
};

// Throws InvalidArgument for options that are missing, or do not go together.
StepShape step_shape(const DataParallelOptions& options, std::source_location site);

class Trainer {
 public:
  // The loss of `rows` of the step, which are those of `leaf`, with the model of the replica at `position`. Called on the
  // device's thread, with gradients on.
  using Forward = c10::function_ref<Loss(int position, std::int64_t leaf, data::RowRange rows)>;
  // The same without a gradient: adds what is to be summed over all leaves.
  using Measure = c10::function_ref<std::vector<at::Tensor>(int position, std::int64_t leaf, data::RowRange rows)>;

  // One replica for each device of step_shape(options). They become copies of the first one.
  Trainer(std::vector<Replica> replicas, DataParallelOptions options, std::source_location site);
  ~Trainer();
  Trainer(Trainer&&) noexcept;
  Trainer& operator=(Trainer&&) noexcept;

  const StepShape& shape() const noexcept;

  // One step of `rows` rows, from 1 to shape().global_batch(). When it throws, parameters, optimizer state and buffers are
  // those before it, and the next call works.
  StepReport step(std::int64_t rows, Forward forward);

  // A part of a step of `rows` rows: forward and backward, and nothing is reduced or updated. The next step() adds its own rows, and is
  // a step of all of them. Throws as step(), and InvalidArgument with logical_shards or compress; the parts before it stay.
  StepReport no_sync(std::int64_t rows, Forward forward);

  // Sums of what `measure` gives for each leaf of `rows` rows, any number of them, in the order of leaves. Modules are in
  // evaluation mode meanwhile.
  std::vector<at::Tensor> evaluate(std::int64_t rows, Measure measure);

  std::int64_t steps() const noexcept;

  // Where each device's time went since the last reset, in steps and evaluations.
  std::vector<DeviceStatistics> statistics() const;
  void reset_statistics();

  // Averaged gradients of the last step, in the order and with the names of the parameters. Before clipping, but for an optimizer of
  // libtorch, which gets them clipped.
  std::vector<NamedTensor> gradients() const;

  // What the rule remembers, as it lies in memory: "momentum_buffer.hidden.weight", of the parameter's shape. Empty for an
  // optimizer of libtorch.
  std::vector<NamedTensor> optimizer_state() const;

  // A copy of everything that later steps depend on: parameters, buffers, optimizer state, step, loss scale. Throws InvalidArgument
  // for an optimizer of libtorch.
  guard::Checkpoint snapshot();

  // Continues from `checkpoint`, on any number of devices that options allow. Throws InvalidArgument that lists every difference
  // when it is of another model or optimizer, and by options.other_options when it was trained otherwise; nothing is changed then,
  // and the loader, which goes to the checkpoint's position, is where it was.
  void restore(const guard::Checkpoint& checkpoint, const RestoreOptions& options = {});
  void restore(const guard::Checkpoint& checkpoint, data::Loader& loader, const RestoreOptions& options = {});

  // What a run does, in a few lines: devices, rows, rate, rule, buckets.
  std::string describe() const;

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace brigade::training
