// A training step of DataParallel on two devices: against PyTorch DistributedDataParallel (Gloo, one process a device) and
// JAX pmap, against its own step on one device, and against what it would take without its reduction, all on one thread a
// device, by turns in one run.
//
// All sides train the same network by plain SGD, from the same parameters on the same rows, and before anything is timed
// their losses after three steps are compared. Goals are judged on the model as a torch::nn module, with a batch as
// trainer.loader() hands it out: cut into the devices' shards already, as the peers' rows are. Beside it, without goals, are
// the same step on batches that it has to cut itself, on new batches that the loader prepares meanwhile, on a tree of
// parameters, with logical_shards, and a plain libtorch loop on one device.
#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <stdlib.h>

#include <array>
#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "brigade/runtime/device.h"
#include "support/contest.h"
#include "support/report.h"
#include "support/rounds.h"
#include "support/team.h"
#include "training/alone.h"
#include "training/flop_limit.h"
#include "training/peers.h"
#include "training/steps.h"

namespace {

using namespace brigade::bench;

constexpr int kDevices = 2;
constexpr std::int64_t kLogicalShards = 8;
constexpr auto kTimePerEntrant = std::chrono::milliseconds(300);
constexpr double kSameLoss = 1e-4;

struct Work {
  std::string_view name;
  std::string_view model;
  std::int64_t batch;  // rows a device
  std::int64_t hidden = 0;

  double ddp_goal, jax_goal;
  std::optional<double> one_device_goal = {};  // of its step time over ours: weak-scaling efficiency
  std::optional<double> flop_goal = {};        // share of the floating-point limit
  std::optional<double> reduction_goal = {};   // most that the reduction may add, as a share of a step without it
  std::optional<double> audit_goal = {};       // of the time of a step without audit over ours
  bool has_shards = false;                     // whether logical_shards are shown
};

constexpr Work kWorks[] = {
    {.name = "784-128-10, 32 rows a device",
     .model = "mlp",
     .batch = 32,
     .hidden = 128,
     .ddp_goal = 6.0,
     .jax_goal = 2.2,
     .one_device_goal = 0.85,
     .reduction_goal = 0.20,
     .has_shards = true},
    {.name = "784-1024-10, 256 rows a device",
     .model = "mlp",
     .batch = 256,
     .hidden = 1024,
     .ddp_goal = 1.4,
     .jax_goal = 1.1,
     .flop_goal = 0.7,
     .audit_goal = 1 / 1.03},
    {.name = "cnn, 64 rows a device",
     .model = "cnn",
     .batch = 64,
     .ddp_goal = 1.3,
     .jax_goal = 2.8,
     .one_device_goal = 0.95,
     .reduction_goal = 0.03,
     .has_shards = true},
    {.name = "transformer, 16 rows a device",
     .model = "transformer",
     .batch = 16,
     .ddp_goal = 1.05,
     .jax_goal = 2.4,
     .one_device_goal = 0.95},
};

constexpr const char* kAlone = "--alone";  // bench_training --alone WORK: the second process of BothAlone

const Work& work_named(std::string_view name) {
  for (const Work& work : kWorks) {
    if (work.name == name) return work;
  }
  throw std::invalid_argument(fmt::format("no work \"{}\"", name));
}

void require_same_loss(const std::string& side, double loss, double expected) {
  if (std::abs(loss - expected) <= kSameLoss) return;
  throw std::runtime_error(fmt::format("{} does not train the same: its loss after {} steps is {} and should be {}",
                                       side, kStepsBeforeLoss, loss, expected));
}

double loss_after_steps(const Step& step) {
  for (int i = 0; i < kStepsBeforeLoss; ++i) step();
  return step().loss;
}

// Where the time of a step goes: medians.
std::string times_of(const Step& step) {
  constexpr int kSteps = 100;
  std::map<std::string, std::vector<double>> taken;
  for (int i = 0; i < kSteps; ++i) {
    const brigade::training::StepTimes times = step().times;
    const auto add = [&](const char* name, std::chrono::nanoseconds time) {
      taken[name].push_back(1e-3 * static_cast<double>(time.count()));
    };
    add("forward", times.forward);
    add("backward", times.backward);
    add("reduction after backward", times.communication);
    add("update", times.update);
    add("all", times.all);
  }
  std::vector<std::string> parts;
  for (auto& [name, values] : taken) parts.push_back(fmt::format("{} {:.0f}", name, median(values)));
  return fmt::format("us of a step by its own report: {}", fmt::join(parts, ", "));
}

// One work's sides, each of them checked before it takes part.
class Sides {
 public:
  Sides(const Work& work, Report& report)
      : setting_(make_setting(std::string(work.model), kDevices, work.batch, work.hidden)),
        report_(report),
        contest_({.name = std::string(work.name),
                  .about = {{"model", work.model}, {"batch", work.batch}, {"hidden", work.hidden}}}),
        losses_({loss_after_steps(plain_step(setting_, 1)), loss_after_steps(plain_step(setting_, kDevices))}) {}

  const Setting& setting() const noexcept { return setting_; }

  void add_ours(std::string name, StepOptions options, std::optional<double> goal = {}) {
    const Step step = our_step(setting_, options);
    // A running loader gives the rows in another order.
    if (options.rows != Rows::kLoaded) require_same_loss(name, loss_after_steps(step), loss(options.devices));
    add_steps(std::move(name), step, goal);
  }

  void add_steps(std::string name, Step step, std::optional<double> goal = {}) {
    const auto nanoseconds = [step](int calls) { return nanoseconds_per_call(calls, [&] { step(); }); };
    add(std::move(name), nanoseconds, goal);
  }

  void add_peer(Library library, double goal) {
    const auto peer = std::make_shared<TrainingPeer>(library, setting_, report_);
    if (!peer->is_there()) return;
    require_same_loss(peer->name(), peer->loss(), loss(kDevices));
    add(
        peer->name(), [peer](int) { return peer->step_nanoseconds(); }, goal);
  }

  void add(std::string name, std::function<double(int calls)> nanoseconds, std::optional<double> goal = {}) {
    contest_.entrants.push_back({.name = std::move(name), .nanoseconds = std::move(nanoseconds), .goal = goal});
  }

  void hold() && { brigade::bench::hold({std::move(contest_)}, kTimePerEntrant, report_); }

 private:
  double loss(std::int64_t devices) const { return losses_[static_cast<std::size_t>(devices - 1)]; }

  Setting setting_;
  Report& report_;
  Contest contest_;
  std::array<double, kDevices> losses_;  // of a plain loop over the rows of one device, and of both
};

void measure(const Work& work, Report& report) {
  Team team(kDevices);
  Sides sides(work, report);
  sides.add_ours("DataParallel", {.devices = kDevices});
  sides.add_peer(Library::kPytorch, work.ddp_goal);
  sides.add_peer(Library::kJax, work.jax_goal);
  sides.add_ours("its step on one device", {.devices = 1}, work.one_device_goal);
  if (work.reduction_goal) {
    const auto alone = std::make_shared<BothAlone>(
        sides.setting(), std::vector<std::string>{"/proc/self/exe", kAlone, std::string(work.name)});
    const auto nanoseconds = [alone](int calls) { return alone->nanoseconds(calls); };
    sides.add("both devices alone, without reduction", nanoseconds, 1 / (1 + *work.reduction_goal));
  }
  if (work.flop_goal) {
    const double flops = mlp_flops(work.batch, work.hidden);
    const auto nanoseconds = [&team, flops](int calls) { return flop_nanoseconds(team, flops, calls); };
    sides.add("floating-point limit", nanoseconds, work.flop_goal);
  }
  sides.add_ours("without audit", {.devices = kDevices, .audit = false}, work.audit_goal);
  sides.add_ours("rows cut by the step", {.devices = kDevices, .rows = Rows::kCutByStep});
  sides.add_ours("new rows from a loader", {.devices = kDevices, .rows = Rows::kLoaded});
  if (work.model == "mlp") sides.add_ours("a tree of parameters", {.devices = kDevices, .form = Form::kTree});
  if (work.has_shards) {
    sides.add_ours(fmt::format("logical_shards = {}", kLogicalShards),
                   {.devices = kDevices, .logical_shards = kLogicalShards});
  }
  sides.add_steps("plain loop on one device", plain_step(sides.setting(), 1));
  const Setting setting = sides.setting();
  std::move(sides).hold();
  report.note(fmt::format("{}: {}", work.name, times_of(our_step(setting, {.devices = kDevices}))));
}

}  // namespace

int main(int argc, char** argv) {
  setenv("BRIGADE_INTRA_OP_THREADS", "1", 1);  // as the peers have
  at::set_num_threads(1);
  brigade::set_cpu_devices(kDevices);
  if (argc == 3 && std::string_view(argv[1]) == kAlone) {
    const Work& work = work_named(argv[2]);
    serve_alone(make_setting(std::string(work.model), kDevices, work.batch, work.hidden));
    return 0;
  }
  Report report("training");
  report.note("without reduction: DataParallel on one device each, in two processes at once; it adds 1 / ratio - 1");
  report.note("floating-point limit: the step's matrix products at the rate of a large sgemm on both cores at once");
  for (const Work& work : kWorks) measure(work, report);
  return report.finish();
}
