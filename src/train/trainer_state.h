// What a Trainer is made of. The step is in step.cpp, the rest in trainer.cpp.
#pragma once

#include <c10/util/FunctionRef.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <source_location>
#include <string_view>
#include <vector>

#include "binding.h"
#include "brigade/runtime/axis.h"
#include "brigade/train/trainer.h"
#include "buckets.h"
#include "buffer_copies.h"
#include "gradient_compression.h"
#include "gradient_measure.h"
#include "layout.h"
#include "leaf_ledger.h"
#include "leaf_plan.h"
#include "loss_scaler.h"
#include "noise_scale.h"
#include "running_statistics.h"
#include "seat.h"
#include "snapshot.h"
#include "step_audit.h"
#include "stragglers.h"
#include "update.h"

namespace brigade::training {

class Trainer::State {
 public:
  State(std::vector<Replica> replicas, DataParallelOptions options, std::source_location site);

  StepReport step(std::int64_t rows, Forward forward);
  StepReport no_sync(std::int64_t rows, Forward forward);
  std::vector<at::Tensor> evaluate(std::int64_t rows, Measure measure);

  const StepShape& shape() const noexcept { return shape_; }
  std::int64_t steps() const noexcept { return step_; }
  Axis& axis() noexcept { return *axis_; }
  std::vector<NamedTensor> gradients() const;
  std::vector<NamedTensor> optimizer_state() const;
  std::string describe() const;
  guard::Checkpoint snapshot();
  void restore(const guard::Checkpoint& checkpoint, const RestoreOptions& options, data::Loader* loader);

 private:
  Memory memory();

  StepReport begin(const LeafPlan& plan);
  void run_on_sound_memory(const LeafPlan& plan, c10::function_ref<void(int position)> work);
  void run(int position, const LeafPlan& plan, Forward forward);
  void run_part(int position, const LeafPlan& plan, Forward forward);
  void run_leaves(int position, const LeafPlan& plan, Extent extent, Forward forward);
  void run_leaf(int position, std::int64_t leaf, const LeafPlan& plan, Forward forward);
  void backward(const Loss& loss, double count) const;
  Decision decide() const;
  void update(int position, const Decision& decision);
  void meet(int position, std::string_view what);
  void conclude(const Decision& decision, StepReport& report);
  void keep_part(const StepReport& report);
  void drop_parts();
  void refresh();

  Seat& seat(int position) noexcept { return seats_[static_cast<std::size_t>(position)]; }
  Share share(int position);
  comm::Group& group_of(const LeafPlan& plan, int position);
  double divisor() const { return ledger_.weight() * loss_scaler_.value(); }
  bool measures_noise() const { return options_.noise_scale_every > 0 && step_ % options_.noise_scale_every == 0; }
  bool finite_until_now() const { return measure_.is_finite() && ledger_.first_non_finite() < 0; }

  const DataParallelOptions options_;
  const std::source_location site_;
  const StepShape shape_;
  const schedule::LearningRate learning_rate_;
  std::vector<Replica> replicas_;
  const Layout layout_;
  Binding parameters_;
  const Flat gradients_;
  GradientMeasure measure_;
  std::unique_ptr<Update> update_;
  std::optional<StepAudit> audit_;
  std::unique_ptr<GradientCompression> compression_;  // null when gradients are summed as they are
  std::shared_ptr<Axis> axis_;
  Buckets buckets_;
  bool buckets_are_learned_ = false;
  Seats seats_;
  BufferCopies buffers_;

  LeafLedger ledger_;
  RunningStatistics running_;
  Stragglers stragglers_;
  NoiseScale noise_scale_;
  LossScaler loss_scaler_;
  std::int64_t step_ = 0;
  double gradient_divisor_ = 1;  // of what the last step has left in gradients_

  // Of parts of the step that are through.
  std::int64_t kept_rows_ = 0;
  std::chrono::nanoseconds kept_time_{0};
};

}  // namespace brigade::training
