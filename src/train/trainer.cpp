#include "brigade/train/trainer.h"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/optim/optimizer.h>

#include <algorithm>
#include <numeric>
#include <optional>

#include "binding.h"
#include "brigade/base/error.h"
#include "brigade/random/key.h"
#include "brigade/runtime/axis.h"
#include "brigade/runtime/body.h"
#include "brigade/train/leaf.h"
#include "brigade/train/rows.h"
#include "buckets.h"
#include "buffer_copies.h"
#include "evaluation.h"
#include "gradient_compression.h"
#include "gradient_measure.h"
#include "layer_check.h"
#include "leaf_ledger.h"
#include "leaf_plan.h"
#include "loss_scaler.h"
#include "noise_scale.h"
#include "non_finite.h"
#include "parameter_gather.h"
#include "precision.h"
#include "running_statistics.h"
#include "seat.h"
#include "snapshot.h"
#include "step_audit.h"
#include "stragglers.h"
#include "timed.h"
#include "update.h"

namespace brigade::training {
namespace {

using Clock = std::chrono::steady_clock;

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

class Trainer::State {
 public:
  State(std::vector<Replica> replicas, DataParallelOptions options, std::source_location site);

  StepReport step(std::int64_t rows, Forward forward);
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

  void run(int position, const LeafPlan& plan, Forward forward);
  void run_leaf(int position, std::int64_t leaf, const LeafPlan& plan, Forward forward);
  void backward(const Loss& loss, double count) const;
  Decision decide() const;
  void update(int position, const Decision& decision);
  void meet(int position, std::string_view what);
  void conclude(const Decision& decision, StepReport& report);
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
};

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

StepReport Trainer::State::step(std::int64_t rows, Forward forward) {
  const auto start = Clock::now();
  if (rows < 1 || rows > shape_.global_batch()) {
    throw InvalidArgument(fmt::format("DataParallel: a step of {} rows; it takes 1 to {}", rows, shape_.global_batch()),
                          {.site = site_});
  }
  const LeafPlan plan(rows, shape_.rows_per_leaf, axis_->size());
  audit_->begin(step_);
  refresh();
  StepReport report = {.step = step_, .rows = rows, .loss_scale = loss_scaler_.value(), .leaves = plan.leaves()};
  do {
    ledger_.open(plan.leaves());
    running_.open(plan.leaves());
    if (compression_) compression_->begin(step_, static_cast<double>(rows) * loss_scaler_.value());
    axis_->run([&](int position) { run(position, plan, forward); });
  } while (audit_->runs_again());
  conclude(decide(), report);
  report.times.all = Clock::now() - start;
  return report;
}

// One device's part of a step.
void Trainer::State::run(int position, const LeafPlan& plan, Forward forward) {
  Seat& own = seat(position);
  own.times = {};
  const std::optional<OneThreadInOperators> one_thread = operators_of_one_thread(options_);
  own.exchange->begin(buckets_, plan.leaves_of(position), options_.overlap, site_);
  if (measures_noise()) own.exchange->measure_leaves();
  {
    const auto arrived = [&](std::size_t parameter, at::Tensor gradient) {
      // Sums over leaves in backward come in one order on all devices, and buckets between them might not.
      if (own.turns->have_met()) own.exchange->hold_back();
      own.exchange->arrived(leaf_index(), parameter, std::move(gradient));
    };
    const GradientTaps::Listening listening(*own.taps, arrived);
    own.turns->run(plan, position, group_of(plan, position),
                   [&](std::int64_t leaf) { run_leaf(position, leaf, plan, forward); });
  }
  {
    const Timed timed(own.times.communication);
    own.exchange->finish();
    const auto device = static_cast<std::size_t>(position);
    const BlockRange blocks = layout_.share(device, seats_.size());
    measure_.sum(blocks, divisor());
    audit_->verify(device, blocks);
    meet(position, "gradient norm");
  }
  const Timed timed(own.times.update);
  if (const Decision decision = decide(); decision.updates) update(position, decision);
}

void Trainer::State::run_leaf(int position, std::int64_t leaf, const LeafPlan& plan, Forward forward) {
  Seat& own = seat(position);
  const LeafScope scope(random::fold_in(random::fold_in(random::key(options_.seed), step_), leaf), step_, leaf);
  const RunningStatistics::Recording recording(running_, leaf, replicas_[static_cast<std::size_t>(position)],
                                               replicas_.front());
  const data::RowRange rows = plan.rows_of(leaf);
  const at::AutoGradMode with_gradients(true);
  Loss loss;
  double count = 0;
  detail::take_data_time();  // of what this thread did before
  {
    const Timed timed(own.times.forward);
    const PrecisionScope precision(options_.precision);
    loss = forward(position, leaf, rows);
    count = ledger_.write(leaf, rows.size(), loss).count;
  }
  const std::chrono::nanoseconds data = detail::take_data_time();
  own.times.data += data;
  own.times.forward -= data;
  const Timed timed(own.times.backward);
  if (count > 0) backward(loss, count);
  own.exchange->end_leaf(leaf);
}

// The loss enters as a sum over what it was taken over; the one division comes after the tree over all leaves.
void Trainer::State::backward(const Loss& loss, double count) const {
  if (!loss.value.requires_grad()) {
    throw InvalidArgument(
        "DataParallel: the loss does not depend on any parameter of the model: it was detached, made with gradients "
        "off, or of "
        "another replica's parameters",
        {.site = site_});
  }
  const double seed = (loss.of == Loss::Of::kMean ? count : 1.0) * loss_scaler_.value();
  torch::autograd::backward({loss.value}, {at::full_like(loss.value, seed)});
}

// From what is complete after the meeting: every device comes to the same.
Decision Trainer::State::decide() const {
  Decision decision = {.updates = finite_until_now() && !audit_->stops_update(),
                       .learning_rate = learning_rate_(step_),
                       .divisor = divisor(),
                       .clip_factor = options_.clip.factor(measure_.norm()),
                       .clip_value = options_.clip.value(),
                       .used = std::vector<bool>(layout_.segments().size())};
  for (const Seat& other : seats_) {
    for (std::size_t i = 0; i < decision.used.size(); ++i) {
      if (other.exchange->has_gradient(i)) decision.used[i] = true;
    }
  }
  return decision;
}

// The devices that have leaves, which are the first ones.
comm::Group& Trainer::State::group_of(const LeafPlan& plan, int position) {
  comm::Group& all = axis_->group(position);
  if (plan.leaves() >= axis_->size() || plan.leaves_of(position).size() == 0) return all;
  std::vector<int> ranks(static_cast<std::size_t>(plan.leaves()));
  std::iota(ranks.begin(), ranks.end(), 0);
  return axis_->among(position, all, ranks);
}

Share Trainer::State::share(int position) {
  const auto device = static_cast<std::size_t>(position);
  return {.device = device,
          .blocks = layout_.share(device, seats_.size()),
          .parameters = &parameters_.of(device),
          .meet = [this, position] { meet(position, "update"); },
          .written = [this, device](const Part& part) { audit_->written(parameters_.of(device), part); }};
}

void Trainer::State::update(int position, const Decision& decision) {
  update_->apply(share(position), decision);
  if (!parameters_.is_shared()) {
    std::vector<BlockRange> written;
    for (std::size_t device = 0; device < seats_.size(); ++device)
      written.push_back(update_->written(device, layout_.share(device, seats_.size())));
    gather_parameters(layout_, parameters_.of(static_cast<std::size_t>(position)), written, axis_->group(position),
                      site_);
  }
  parameters_.mark_written(replicas_[static_cast<std::size_t>(position)], static_cast<std::size_t>(position));
}

void Trainer::State::meet(int position, std::string_view what) {
  axis_->group(position).barrier({.tag = what, .site = site_});
}

// Takes over what the program did to parameters since the last step.
void Trainer::State::refresh() { audit_->take_over(parameters_.refresh(replicas_)); }

// On the caller's thread, when all devices are through.
void Trainer::State::conclude(const Decision& decision, StepReport& report) {
  report.loss = ledger_.loss();
  report.weight = ledger_.weight();
  report.metrics = ledger_.metrics();
  report.learning_rate = decision.learning_rate;
  report.gradient_norm = measure_.norm();
  report.clip_factor = decision.clip_factor;
  report.skipped = !decision.updates;
  report.healed = audit_->healed();
  audit_->end(decision.updates);
  report.digest = audit_->digest();
  if (measures_noise() && decision.updates) {
    if (const auto norms = norms_of_leaves(seats_, report.leaves, ledger_, loss_scaler_.value(), measure_.norm()))
      noise_scale_.add(*norms);
  }
  report.noise_scale = noise_scale_.value();
  if (compression_) report.compression = compression_->report();
  if (decision.updates) {
    update_->conclude(decision);
    if (compression_) compression_->keep();
    running_.apply();
  } else if (!loss_scaler_.is_dynamic() && options_.non_finite == NonFinite::kStop) {
    throw_non_finite(seats_, ledger_, measure_, layout_, {.step = step_, .site = site_});
  }
  loss_scaler_.count(decision.updates);
  for (std::size_t i = 0; i < decision.used.size(); ++i) {
    if (!decision.used[i]) report.unused_parameters.push_back(layout_.segments()[i].name);
  }
  report.slow_device = stragglers_.add(seats_, axis_->devices(), step_);
  for (const Seat& own : seats_) {
    if (own.times.communication <= report.times.communication && report.times.forward.count() > 0) continue;
    report.times = own.times;
  }
  if (!buckets_are_learned_) {
    buckets_ = Buckets(layout_, {.first = options_.first_bucket_bytes, .others = options_.bucket_bytes},
                       seats_.front().exchange->order());
    buckets_are_learned_ = true;
  }
  buffers_.spread(replicas_);
  ++step_;
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
    named.push_back({layout_.segments()[i].name, gradients_.view(i) / divisor()});
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
  const Memory own = memory();
  audit_->require_intact();
  return snapshot_of(own, step_, options_, shape_);
}

void Trainer::State::restore(const guard::Checkpoint& checkpoint, const RestoreOptions& options, data::Loader* loader) {
  const Memory own = memory();
  require_restorable(checkpoint, own, options_, shape_, options.other_options);
  if (loader != nullptr) seek(*loader, checkpoint);
  training::restore(checkpoint, own, replicas_);
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
