#include "brigade/train/trainer.h"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/nn/module.h>
#include <torch/optim/optimizer.h>

#include <algorithm>
#include <numeric>
#include <optional>

#include "binding.h"
#include "brigade/base/error.h"
#include "brigade/base/log.h"
#include "brigade/random/key.h"
#include "brigade/runtime/axis.h"
#include "brigade/runtime/body.h"
#include "brigade/train/leaf.h"
#include "buckets.h"
#include "gradient_compression.h"
#include "gradient_measure.h"
#include "layer_check.h"
#include "leaf_ledger.h"
#include "leaf_plan.h"
#include "memory_audit.h"
#include "noise_scale.h"
#include "non_finite.h"
#include "precision.h"
#include "running_statistics.h"
#include "seat.h"
#include "snapshot.h"
#include "stragglers.h"
#include "update.h"

namespace brigade::training {
namespace {

using Clock = std::chrono::steady_clock;

// Adds the time from its construction to its end.
class Timed {
 public:
  explicit Timed(std::chrono::nanoseconds& total) : total_(total), start_(Clock::now()) {}
  ~Timed() { total_ += Clock::now() - start_; }
  Timed(const Timed&) = delete;
  Timed& operator=(const Timed&) = delete;

 private:
  std::chrono::nanoseconds& total_;
  Clock::time_point start_;
};

std::vector<Device> first_devices(const DataParallelOptions& options, std::int64_t count) {
  const std::vector<Device>& all = options.devices.empty() ? devices() : options.devices;
  return {all.begin(), all.begin() + count};
}

std::vector<at::Tensor> tensors_of(const std::vector<NamedTensor>& named) {
  std::vector<at::Tensor> tensors;
  for (const NamedTensor& one : named) tensors.push_back(one.tensor);
  return tensors;
}

void set_training(std::vector<Replica>& replicas, bool training) {
  for (Replica& replica : replicas) {
    if (replica.module) replica.module->train(training);
  }
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
  void audit_now();

  void run(int position, const LeafPlan& plan, Forward forward);
  void run_leaf(int position, std::int64_t leaf, const LeafPlan& plan, Forward forward);
  void backward(const Loss& loss, double count) const;
  Decision decide() const;
  void update(int position, const Decision& decision);
  void gather(int position);
  void meet(int position, std::string_view what);
  void conclude(const Decision& decision, StepReport& report);
  void spread_buffers();
  bool answer_drift(StepReport& report);
  [[noreturn]] void throw_drift(const std::string& when, const std::string& what) const;
  void name_straggler(StepReport& report);
  void refresh();

  Seat& seat(int position) noexcept { return seats_[static_cast<std::size_t>(position)]; }
  Share share(int position);
  comm::Group& group_of(const LeafPlan& plan, int position);
  std::optional<OneThreadInOperators> operators_of_one_thread() const;
  double divisor() const { return ledger_.weight() * loss_scale_; }
  bool measures_noise() const { return options_.noise_scale_every > 0 && step_ % options_.noise_scale_every == 0; }
  bool finite_until_now() const { return measure_.is_finite() && ledger_.first_non_finite() < 0; }
  bool is_audited(std::int64_t step) const { return audit_ && step % options_.audit.every == 0; }
  bool verifies() const { return is_audited(step_) && digests_are_current_; }
  bool records() const { return is_audited(step_ + 1); }
  bool has_drifted() const { return verifies() && !audit_->is_clean(); }

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
  std::optional<MemoryAudit> audit_;
  bool digests_are_current_ = true;
  std::unique_ptr<GradientCompression> compression_;  // null when gradients are summed as they are
  std::shared_ptr<Axis> axis_;
  Buckets buckets_;
  bool buckets_are_learned_ = false;
  std::vector<Seat> seats_;
  std::vector<std::uint32_t> buffer_versions_;  // of replica 0, when the others were made equal

  LeafLedger ledger_;
  RunningStatistics running_;
  Stragglers stragglers_;
  NoiseScale noise_scale_;
  std::int64_t step_ = 0;
  std::int64_t finite_steps_ = 0;  // in a row
  double loss_scale_;
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
      loss_scale_(options_.loss_scale.initial) {
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
  if (options_.audit.every > 0) audit_.emplace(layout_, parameters_.copies(), update_->buffers(), seats_.size());
  set_training(replicas_, true);
}

StepReport Trainer::State::step(std::int64_t rows, Forward forward) {
  const auto start = Clock::now();
  if (rows < 1 || rows > shape_.global_batch()) {
    throw InvalidArgument(fmt::format("DataParallel: a step of {} rows; it takes 1 to {}", rows, shape_.global_batch()),
                          {.site = site_});
  }
  const LeafPlan plan(rows, shape_.rows_per_leaf, axis_->size());
  refresh();
  StepReport report = {.step = step_, .rows = rows, .loss_scale = loss_scale_, .leaves = plan.leaves()};
  do {
    ledger_.open(plan.leaves());
    running_.open(plan.leaves());
    if (compression_) compression_->begin(step_, static_cast<double>(rows) * loss_scale_);
    axis_->run([&](int position) { run(position, plan, forward); });
  } while (has_drifted() && answer_drift(report));
  conclude(decide(), report);
  report.times.all = Clock::now() - start;
  return report;
}

// One device's part of a step.
void Trainer::State::run(int position, const LeafPlan& plan, Forward forward) {
  Seat& own = seat(position);
  own.times = {};
  const std::optional<OneThreadInOperators> one_thread = operators_of_one_thread();
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
    measure_.sum(share(position).blocks, divisor());
    if (verifies()) audit_->verify(static_cast<std::size_t>(position), share(position).blocks);
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
  {
    const Timed timed(own.times.forward);
    const PrecisionScope precision(options_.precision);
    loss = forward(position, leaf, rows);
    count = ledger_.write(leaf, rows.size(), loss).count;
  }
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
  const double seed = (loss.of == Loss::Of::kMean ? count : 1.0) * loss_scale_;
  torch::autograd::backward({loss.value}, {at::full_like(loss.value, seed)});
}

// From what is complete after the meeting: every device comes to the same.
Decision Trainer::State::decide() const {
  Decision decision = {.updates = finite_until_now() && (!has_drifted() || options_.audit.on_drift == OnDrift::kWarn),
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

// Where bits are promised.
std::optional<OneThreadInOperators> Trainer::State::operators_of_one_thread() const {
  return options_.logical_shards > 0 ? std::make_optional<OneThreadInOperators>() : std::nullopt;
}

Share Trainer::State::share(int position) {
  const auto device = static_cast<std::size_t>(position);
  return {.device = device,
          .blocks = layout_.share(device, seats_.size()),
          .parameters = &parameters_.of(device),
          .meet = [this, position] { meet(position, "update"); },
          .written =
              [this, device](const Part& part) {
                if (records()) audit_->record(parameters_.of(device), part);
              }};
}

void Trainer::State::update(int position, const Decision& decision) {
  update_->apply(share(position), decision);
  if (!parameters_.is_shared()) gather(position);
  parameters_.mark_written(replicas_[static_cast<std::size_t>(position)], static_cast<std::size_t>(position));
}

// Every device's blocks to the replicas of all others.
void Trainer::State::gather(int position) {
  std::vector<std::vector<comm::Piece>> pieces(seats_.size());
  std::vector<comm::Pending> pending;
  for (std::size_t root = 0; root < seats_.size(); ++root) {
    for (const Part& part : layout_.parts(update_->written(root, layout_.share(root, seats_.size())))) {
      with_elements(layout_, parameters_.of(static_cast<std::size_t>(position)), part, [&](auto elements) {
        const std::span<std::byte> own = std::as_writable_bytes(elements);
        pieces[root].push_back({.dtype = comm::DType::kUint8,
                                .in = static_cast<int>(root) == position ? own : std::span<std::byte>(),
                                .out = own});
      });
    }
    if (pieces[root].empty()) continue;
    pending.push_back(axis_->group(position).start(
        {.operation = comm::Operation::kBroadcast, .root = static_cast<int>(root), .pieces = pieces[root]},
        {.tag = "parameters", .site = site_}));
  }
  for (comm::Pending& one : pending) one.wait();
}

void Trainer::State::meet(int position, std::string_view what) {
  axis_->group(position).barrier({.tag = what, .site = site_});
}

// Whether the step is to be run again, with what was changed put right.
bool Trainer::State::answer_drift(StepReport& report) {
  const std::string what = audit_->describe();
  if (options_.audit.on_drift == OnDrift::kWarn) {
    log::warn(fmt::format("step {}: {}. The step went on with it", step_, what));
    audit_->accept();
    return false;
  }
  if (options_.audit.on_drift == OnDrift::kHeal && audit_->heal()) {
    log::warn(fmt::format("step {}: {}. It was put back, and the step's leaves are run again", step_, what));
    report.healed = what;
    return true;
  }
  throw_drift(fmt::format("before the update of step {}", step_), what);
}

void Trainer::State::throw_drift(const std::string& when, const std::string& what) const {
  throw DriftError(
      fmt::format("{}, {}. Nothing was updated. Memory is damaged, or something writes where it should not: go on from "
                  "the last checkpoint, or, where a replica still has the right value or one bit has flipped, put it "
                  "back with .audit = {{.on_drift = OnDrift::kHeal}}",
                  when, what),
      {.device = audit_->device(), .site = site_});
}

// What has changed by itself is not to get into a checkpoint.
void Trainer::State::audit_now() {
  if (!audit_ || !digests_are_current_) return;
  for (std::size_t device = 0; device < seats_.size(); ++device)
    audit_->verify(device, layout_.share(device, seats_.size()));
  if (audit_->is_clean()) return;
  const std::string what = audit_->describe();
  if (options_.audit.on_drift != OnDrift::kHeal || !audit_->heal())
    throw_drift(fmt::format("before the checkpoint of step {}", step_), what);
  log::warn(fmt::format("checkpoint of step {}: {}. It was put back", step_, what));
}

// Takes over what the program did to parameters since the last step.
void Trainer::State::refresh() {
  for (const std::size_t segment : parameters_.refresh(replicas_)) {
    if (audit_) audit_->record(segment);
  }
}

// On the caller's thread, when all devices are through.
void Trainer::State::conclude(const Decision& decision, StepReport& report) {
  report.loss = ledger_.loss();
  report.weight = ledger_.weight();
  report.metrics = ledger_.metrics();
  report.learning_rate = decision.learning_rate;
  report.gradient_norm = measure_.norm();
  report.clip_factor = decision.clip_factor;
  report.skipped = !decision.updates;
  if (decision.updates) digests_are_current_ = records();
  if (audit_ && digests_are_current_) report.digest = audit_->digest();
  if (measures_noise() && decision.updates) {
    if (const auto norms = norms_of_leaves(seats_, report.leaves, ledger_, loss_scale_, measure_.norm()))
      noise_scale_.add(*norms);
  }
  report.noise_scale = noise_scale_.value();
  if (compression_) report.compression = compression_->report();
  const LossScale& scaling = options_.loss_scale;
  const bool dynamic = scaling.interval > 0;
  if (!decision.updates) {
    if (!dynamic && options_.non_finite == NonFinite::kStop)
      throw_non_finite(seats_, ledger_, measure_, layout_, {.step = step_, .site = site_});
    finite_steps_ = 0;
    if (dynamic) loss_scale_ *= scaling.backoff;
  } else {
    update_->conclude(decision);
    if (compression_) compression_->keep();
    running_.apply();
    if (dynamic && ++finite_steps_ % scaling.interval == 0) loss_scale_ *= scaling.growth;
  }
  for (std::size_t i = 0; i < decision.used.size(); ++i) {
    if (!decision.used[i]) report.unused_parameters.push_back(layout_.segments()[i].name);
  }
  name_straggler(report);
  for (const Seat& own : seats_) {
    if (own.times.communication <= report.times.communication && report.times.forward.count() > 0) continue;
    report.times = own.times;
  }
  if (!buckets_are_learned_) {
    buckets_ = Buckets(layout_, {.first = options_.first_bucket_bytes, .others = options_.bucket_bytes},
                       seats_.front().exchange->order());
    buckets_are_learned_ = true;
  }
  spread_buffers();
  ++step_;
}

void Trainer::State::name_straggler(StepReport& report) {
  std::vector<std::chrono::nanoseconds> taken;
  for (const Seat& own : seats_) taken.push_back(own.times.forward + own.times.backward);
  report.slow_device = stragglers_.add(taken);
  if (!report.slow_device) return;
  const auto& [device, times] = *report.slow_device;
  log::warn_once(
      fmt::format("slow-device-{}-{}", static_cast<const void*>(this), device),
      fmt::format("step {}: device {} takes {:.1f} times as long as the others, which wait for it. Is its core "
                  "busy with something else, or are its rows harder?",
                  step_, to_string(axis_->devices()[static_cast<std::size_t>(device)]), times));
}

// What a forward wrote into buffers of replica 0, such as running statistics, holds for all.
void Trainer::State::spread_buffers() {
  const at::NoGradGuard no_grad;
  const std::vector<NamedTensor>& first = replicas_.front().buffers;
  buffer_versions_.resize(first.size());
  for (std::size_t i = 0; i < first.size(); ++i) {
    const auto version = static_cast<std::uint32_t>(first[i].tensor._version());
    if (std::exchange(buffer_versions_[i], version) == version) continue;
    for (std::size_t r = 1; r < replicas_.size(); ++r) replicas_[r].buffers[i].tensor.copy_(first[i].tensor);
  }
}

std::vector<at::Tensor> Trainer::State::evaluate(std::int64_t rows, Measure measure) {
  if (rows < 1) throw InvalidArgument("DataParallel: nothing to evaluate: the data have no rows", {.site = site_});
  const LeafPlan plan(rows, shape_.rows_per_leaf, axis_->size());
  std::vector<std::vector<at::Tensor>> sums(static_cast<std::size_t>(plan.leaves()));
  refresh();
  set_training(replicas_, false);
  try {
    axis_->run([&](int position) {
      const at::NoGradGuard no_grad;
      const std::optional<OneThreadInOperators> one_thread = operators_of_one_thread();
      const PrecisionScope precision(options_.precision);
      const LeafRange leaves = plan.leaves_of(position);
      for (std::int64_t leaf = leaves.begin; leaf < leaves.end; ++leaf)
        sums[static_cast<std::size_t>(leaf)] = measure(position, leaf, plan.rows_of(leaf));
    });
  } catch (...) {
    set_training(replicas_, true);
    throw;
  }
  set_training(replicas_, true);
  std::vector<at::Tensor> total = std::move(sums.front());
  for (std::size_t leaf = 1; leaf < sums.size(); ++leaf) {
    for (std::size_t i = 0; i < total.size(); ++i) total[i] = total[i] + sums[leaf][i];
  }
  return total;
}

std::vector<NamedTensor> Trainer::State::gradients() const {
  std::vector<NamedTensor> named;
  for (std::size_t i = 0; i < layout_.segments().size(); ++i) {
    named.push_back({layout_.segments()[i].name, gradients_.view(i) / divisor()});
  }
  return named;
}

std::vector<NamedTensor> Trainer::State::optimizer_state() const {
  std::vector<NamedTensor> named;
  for (const NamedFlat& one : update_->buffers()) {
    for (std::size_t i = 0; i < layout_.segments().size(); ++i)
      named.push_back({fmt::format("{}.{}", one.name, layout_.segments()[i].name), one.flat->view(i)});
  }
  return named;
}

// Everything that a later step depends on, but for the model's code and the options.
Memory Trainer::State::memory() {
  refresh();
  Memory memory = {.model = training::tensors_of(replicas_.front()), .optimizer = update_->state()};
  const auto add = [&](const char* name, auto& number) { memory.optimizer.push_back({name, tensor_on(number)}); };
  add("loss_scale", loss_scale_);
  add("finite_steps", finite_steps_);
  noise_scale_.visit(add);
  return memory;
}

guard::Checkpoint Trainer::State::snapshot() {
  const Memory own = memory();
  audit_now();
  return snapshot_of(own, step_, options_, shape_);
}

void Trainer::State::restore(const guard::Checkpoint& checkpoint, const RestoreOptions& options, data::Loader* loader) {
  const Memory own = memory();
  require_restorable(checkpoint, own, options_, shape_, options.other_options);
  if (loader != nullptr) seek(*loader, checkpoint);
  training::restore(checkpoint, own, replicas_);
  step_ = checkpoint.step;
  digests_are_current_ = true;
  if (audit_) audit_->record_all();
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
