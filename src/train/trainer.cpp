#include "brigade/train/trainer.h"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <torch/optim/optimizer.h>

#include "brigade/base/error.h"
#include "evaluation.h"
#include "layer_check.h"
#include "trainer_state.h"

namespace brigade::training {
namespace {

std::vector<Device> first_devices(const DataParallelOptions& options, std::int64_t count) {
  const std::vector<Device>& all = options.devices.empty() ? devices() : options.devices;
  return {all.begin(), all.begin() + count};
}

std::vector<at::Tensor> tensors_of(const std::vector<NamedTensor>& named) {
  std::vector<at::Tensor> tensors;
  for (const NamedTensor& one : named) tensors.push_back(one.tensor);
  return tensors;
}

}  // namespace

Trainer::State::State(std::vector<Replica> replicas, DataParallelOptions options, std::source_location site)
    : options_(std::move(options)),
      site_(site),
      shape_(step_shape(options_, site)),
      learning_rate_(options_.learning_rate.bind(shape_.global_batch())),
      replicas_(std::move(replicas)),
      layout_(entries_of(replicas_.front())),
      parameters_(layout_, replicas_, options_.share_parameters ? Binding::Copies::kOne : Binding::Copies::kEach),
      gradients_(layout_),
      measure_(layout_, gradients_),
      axis_(Axis::create("devices", first_devices(options_, shape_.devices), site)),
      buckets_(layout_, {.first = options_.first_bucket_bytes, .others = options_.bucket_bytes}),
      loss_scaler_(options_.loss_scale) {
  const std::vector<at::Tensor> first = tensors_of(replicas_.front().parameters);
  update_ = options_.torch_optimizer ? update_by_torch(layout_, gradients_, options_.torch_optimizer(first), first)
                                     : update_by_rule(layout_, gradients_, options_.optimizer, options_.groups);
  if (options_.compress.codec) {
    compression_ =
        std::make_unique<GradientCompression>(layout_, options_.compress, shape_.leaves, options_.seed, site);
  }
  for (int position = 0; position < axis_->size(); ++position) {
    Seat& own = seats_.emplace_back();
    own.taps = std::make_unique<GradientTaps>(tensors_of(replicas_[static_cast<std::size_t>(position)].parameters));
    own.exchange = std::make_unique<GradientExchange>(layout_, gradients_, axis_->group(position), compression_.get());
    own.turns = std::make_unique<LeafTurns>();
  }
  check_layers(replicas_.front(), options_, site_);
  audit_.emplace(options_.audit, layout_, parameters_.copies(), update_->buffers(), seats_.size(), site_);
  begin_training(replicas_);
}

std::vector<at::Tensor> Trainer::State::evaluate(std::int64_t rows, Measure measure) {
  if (rows < 1) throw InvalidArgument("DataParallel: nothing to evaluate: the data have no rows", {.site = site_});
  const LeafPlan plan(rows, shape_.rows_per_leaf, axis_->size());
  refresh();
  return training::evaluate(*axis_, plan, replicas_, options_, measure);
}

std::vector<NamedTensor> Trainer::State::gradients() const {
  std::vector<NamedTensor> named;
  for (std::size_t i = 0; i < layout_.segments().size(); ++i) {
    named.push_back({layout_.segments()[i].name, gradients_.view(i) / gradient_divisor_});
  }
  return named;
}

std::vector<NamedTensor> Trainer::State::optimizer_state() const {
  std::vector<NamedTensor> views;
  for (const auto& [name, flat] : update_->buffers()) {
    for (std::size_t i = 0; i < layout_.segments().size(); ++i)
      views.push_back({fmt::format("{}.{}", name, layout_.segments()[i].name), flat->view(i)});
  }
  return views;
}

// Everything that a later step depends on, but for the model's code and the options.
Memory Trainer::State::memory() {
  refresh();
  Memory memory = {.model = training::tensors_of(replicas_.front()), .optimizer = update_->state()};
  const auto add = [&](const char* name, auto& number) { memory.optimizer.push_back({name, tensor_on(number)}); };
  loss_scaler_.visit(add);
  noise_scale_.visit(add);
  if (compression_) {
    for (NamedTensor& one : compression_->state()) memory.optimizer.push_back(std::move(one));
  }
  return memory;
}

guard::Checkpoint Trainer::State::snapshot() {
  if (kept_rows_ > 0) {
    throw InvalidArgument(
        fmt::format(
            "DataParallel: a checkpoint within step {}: gradients of {} rows are summed and not yet applied, and "
            "no part of it. Take it after step()",
            step_, kept_rows_),
        {.site = site_});
  }
  const Memory own = memory();
  audit_->require_intact();
  return snapshot_of(own, step_, options_, shape_);
}

void Trainer::State::restore(const guard::Checkpoint& checkpoint, const RestoreOptions& options, data::Loader* loader) {
  const Memory own = memory();
  require_restorable(checkpoint, own, options_, shape_, options.other_options);
  if (loader != nullptr) seek(*loader, checkpoint);
  training::restore(checkpoint, own, replicas_);
  drop_parts();
  step_ = checkpoint.step;
  audit_->take_over_all();
}

std::string Trainer::State::describe() const {
  return fmt::format("{} devices, {} rows a step in {} leaves of {}; {}; learning rate {}{}", axis_->size(),
                     shape_.global_batch(), shape_.leaves, shape_.rows_per_leaf, update_->describe(),
                     learning_rate_.describe(), compression_ ? "; " + compression_->describe() : "");
}

Trainer::Trainer(std::vector<Replica> replicas, DataParallelOptions options, std::source_location site)
    : state_(std::make_unique<State>(std::move(replicas), std::move(options), site)) {}
Trainer::~Trainer() = default;
Trainer::Trainer(Trainer&&) noexcept = default;
Trainer& Trainer::operator=(Trainer&&) noexcept = default;

const StepShape& Trainer::shape() const noexcept { return state_->shape(); }
StepReport Trainer::step(std::int64_t rows, Forward forward) { return state_->step(rows, forward); }
StepReport Trainer::no_sync(std::int64_t rows, Forward forward) { return state_->no_sync(rows, forward); }
std::vector<at::Tensor> Trainer::evaluate(std::int64_t rows, Measure measure) {
  return state_->evaluate(rows, measure);
}
std::int64_t Trainer::steps() const noexcept { return state_->steps(); }
std::vector<DeviceStatistics> Trainer::statistics() const { return state_->axis().statistics(); }
void Trainer::reset_statistics() { state_->axis().reset_statistics(); }
std::vector<NamedTensor> Trainer::gradients() const { return state_->gradients(); }
std::vector<NamedTensor> Trainer::optimizer_state() const { return state_->optimizer_state(); }
std::string Trainer::describe() const { return state_->describe(); }
guard::Checkpoint Trainer::snapshot() { return state_->snapshot(); }
void Trainer::restore(const guard::Checkpoint& checkpoint, const RestoreOptions& options) {
  state_->restore(checkpoint, options, nullptr);
}
void Trainer::restore(const guard::Checkpoint& checkpoint, data::Loader& loader, const RestoreOptions& options) {
  state_->restore(checkpoint, options, &loader);
}

}  // namespace brigade::training
