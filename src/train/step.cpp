// A step, from its rows to the update: what all devices do, and what is done once, before and after.
#include <ATen/ATen.h>
#include <fmt/format.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <numeric>

#include "brigade/base/error.h"
#include "brigade/random/key.h"
#include "brigade/runtime/body.h"
#include "brigade/train/leaf.h"
#include "brigade/train/rows.h"
#include "evaluation.h"
#include "non_finite.h"
#include "parameter_gather.h"
#include "precision.h"
#include "timed.h"
#include "trainer_state.h"

namespace brigade::training {
namespace {

using Clock = std::chrono::steady_clock;

LeafPlan plan_of(std::int64_t rows, const StepShape& shape, int devices, std::source_location site) {
  if (rows < 1 || rows > shape.global_batch()) {
    throw InvalidArgument(fmt::format("DataParallel: a step of {} rows; it takes 1 to {}", rows, shape.global_batch()),
                          {.site = site});
  }
  return {rows, shape.rows_per_leaf, devices};
}

// Which device carries which leaf of a part depends on the devices, and a residual belongs to a leaf.
void require_parts_allowed(const DataParallelOptions& options, std::source_location site) {
  if (options.logical_shards == 0 && !options.compress.codec) return;
  throw InvalidArgument(
      fmt::format("DataParallel: no_sync() sums on each device what the parts of a step give, and does not go together "
                  "with {}. Give the step whole: a larger global_batch with as many more {}",
                  options.logical_shards > 0 ? "logical_shards" : "compress",
                  options.logical_shards > 0 ? "logical_shards" : "leaves, by accumulate"),
      {.site = site});
}

}  // namespace

StepReport Trainer::State::step(std::int64_t rows, Forward forward) {
  const auto start = Clock::now();
  const LeafPlan plan = plan_of(rows, shape_, axis_->size(), site_);
  StepReport report = begin(plan);
  run_on_sound_memory(plan, [&](int position) { run(position, plan, forward); });
  const std::chrono::nanoseconds before = kept_time_;
  conclude(decide(), report);
  report.times.all = before + (Clock::now() - start);
  return report;
}

StepReport Trainer::State::no_sync(std::int64_t rows, Forward forward) {
  const auto start = Clock::now();
  require_parts_allowed(options_, site_);
  const LeafPlan plan = plan_of(rows, shape_, axis_->size(), site_);
  StepReport report = begin(plan);
  run_on_sound_memory(plan, [&](int position) { run_part(position, plan, forward); });
  report.healed = audit_->healed();
  audit_->end(false);
  ledger_.report(report);
  report.digest = audit_->digest();
  report.times = slowest(seats_);
  report.times.all = kept_time_ + (Clock::now() - start);
  keep_part(report);
  return report;
}

// On the caller's thread, before the first leaf.
StepReport Trainer::State::begin(const LeafPlan& plan) {
  audit_->begin(step_);
  refresh();
  return {.step = step_, .rows = kept_rows_ + plan.rows(), .loss_scale = loss_scaler_.value()};
}

// On every device; once more when memory has changed meanwhile and was put right.
void Trainer::State::run_on_sound_memory(const LeafPlan& plan, c10::function_ref<void(int position)> work) {
  do {
    ledger_.open(plan.leaves());
    running_.open(plan.leaves());
    if (compression_) compression_->begin(step_, static_cast<double>(plan.rows()) * loss_scaler_.value());
    axis_->run(work);
  } while (audit_->runs_again());
}

// One device's part of a step.
void Trainer::State::run(int position, const LeafPlan& plan, Forward forward) {
  Seat& own = seat(position);
  const std::optional<OneThreadInOperators> one_thread = operators_of_one_thread(options_);
  run_leaves(position, plan, kept_rows_ > 0 ? Extent::kRest : Extent::kStep, forward);
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

// The same of a part of a step. Gradients that are kept must be those of parameters that were sound until the last device
// was through.
void Trainer::State::run_part(int position, const LeafPlan& plan, Forward forward) {
  const std::optional<OneThreadInOperators> one_thread = operators_of_one_thread(options_);
  run_leaves(position, plan, Extent::kPart, forward);
  meet(position, "end of a part");
  const auto device = static_cast<std::size_t>(position);
  audit_->verify(device, layout_.share(device, seats_.size()));
}

void Trainer::State::run_leaves(int position, const LeafPlan& plan, Extent extent, Forward forward) {
  Seat& own = seat(position);
  own.times = kept_rows_ > 0 ? own.kept_times : StepTimes();
  own.exchange->begin(buckets_, plan.leaves_of(position), extent, options_.overlap, site_);
  if (measures_noise() && extent == Extent::kStep) own.exchange->measure_leaves();
  const auto arrived = [&](std::size_t parameter, at::Tensor gradient) {
    // Sums over leaves in backward come in one order on all devices, and buckets between them might not.
    if (own.turns->have_met()) own.exchange->hold_back();
    own.exchange->arrived(leaf_index(), parameter, std::move(gradient));
  };
  const GradientTaps::Listening listening(*own.taps, arrived);
  own.turns->run(plan, position, group_of(plan, position),
                 [&](std::int64_t leaf) { run_leaf(position, leaf, plan, forward); });
}

void Trainer::State::run_leaf(int position, std::int64_t leaf, const LeafPlan& plan, Forward forward) {
  Seat& own = seat(position);
  const random::Key step_key = random::fold_in(random::key(options_.seed), step_);
  const LeafScope scope(random::fold_in(step_key, ledger_.kept_leaves() + leaf), step_, leaf);
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
  ledger_.report(report);
  report.learning_rate = decision.learning_rate;
  report.gradient_norm = measure_.norm();
  report.clip_factor = decision.clip_factor;
  report.skipped = !decision.updates;
  report.healed = audit_->healed();
  audit_->end(decision.updates);
  report.digest = audit_->digest();
  gradient_divisor_ = decision.updates && options_.torch_optimizer ? 1.0 : decision.divisor;  // which divides in place
  // The leaves of earlier parts are not there any more.
  if (measures_noise() && decision.updates && kept_rows_ == 0) {
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
    const bool in_parts = kept_rows_ > 0;
    drop_parts();  // they have the number too, perhaps
    throw_non_finite(seats_, ledger_, measure_, layout_, {.step = step_, .in_parts = in_parts, .site = site_});
  }
  report.times = slowest(seats_);
  drop_parts();
  loss_scaler_.count(decision.updates);
  for (std::size_t i = 0; i < decision.used.size(); ++i) {
    if (!decision.used[i]) report.unused_parameters.push_back(layout_.segments()[i].name);
  }
  report.slow_device = stragglers_.add(seats_, axis_->devices(), step_);
  if (!buckets_are_learned_) {
    buckets_ = Buckets(layout_, {.first = options_.first_bucket_bytes, .others = options_.bucket_bytes},
                       seats_.front().exchange->order());
    buckets_are_learned_ = true;
  }
  buffers_.spread(replicas_);
  ++step_;
}

// On the caller's thread: the part that has run belongs to the step.
void Trainer::State::keep_part(const StepReport& report) {
  axis_->run([&](int position) { seat(position).exchange->keep_part(); });
  ledger_.keep_part();
  running_.keep_part();
  for (Seat& own : seats_) own.kept_times = own.times;
  kept_rows_ = report.rows;
  kept_time_ = report.times.all;
}

void Trainer::State::drop_parts() {
  for (const Seat& own : seats_) own.exchange->drop_parts();
  ledger_.drop_parts();
  running_.drop_parts();
  kept_rows_ = 0;
  kept_time_ = {};
}

}  // namespace brigade::training
