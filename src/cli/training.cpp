#include "training.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <chrono>
#include <cmath>

#include "brigade/base/error.h"
#include "brigade/data/normalize.h"
#include "brigade/train/data_parallel.h"
#include "checkpoints.h"

namespace brigade::cli {
namespace {

using Clock = std::chrono::steady_clock;

struct Rows {
  torch::Tensor x, y;
};

// `where` is for people, who count steps from 1.
void require_finite(double loss, const std::string& where) {
  if (std::isfinite(loss)) return;
  throw NonFiniteError(
      fmt::format("the loss became {} {}. The steps are too long: try --lr at a tenth of what it is, or "
                  "--clip 1",
                  loss, where),
      {.axis = "devices", .device = inside_body() ? place_of_body(std::source_location::current()).position : 0});
}

// One answer a line: [answers, classes] for either kind of network.
torch::Tensor scores_of(Network& network, const torch::Tensor& x, std::int64_t classes) {
  return network.forward(x).to(at::kFloat).reshape({-1, classes});
}

void add(training::StepTimes& sum, const training::StepTimes& one) {
  sum.forward += one.forward;
  sum.backward += one.backward;
  sum.communication += one.communication;
  sum.update += one.update;
  sum.all += one.all;
}

void add(std::vector<DeviceStatistics>& sums, const std::vector<DeviceStatistics>& ones) {
  sums.resize(ones.size());
  for (std::size_t i = 0; i < ones.size(); ++i) {
    sums[i].busy += ones[i].busy;
    sums[i].moving += ones[i].moving;
    sums[i].waiting += ones[i].waiting;
    sums[i].bytes += ones[i].bytes;
  }
}

}  // namespace

double Evaluation::perplexity() const { return std::exp(loss); }

double RunResult::efficiency() const {
  double computing = 0;
  for (const DeviceStatistics& device : devices) computing += std::chrono::duration<double>(device.computing()).count();
  return seconds > 0 ? computing / (seconds * static_cast<double>(devices.size())) : 0;
}

class Training::State {
 public:
  State(const TrainOptions& options, const Plan& plan, const DataSource& data)
      : options_(options),
        plan_(plan),
        data_(data),
        checkpoints_(options.checkpoint, plan.steps_per_epoch),
        trainer_([&] { return plan.model->make(plan.shape, plan.network); }, plan.trainer) {}

  RunResult run(const Listener& listener, const std::function<bool()>& should_stop);

  const Network& network() { return *trainer_.replica(0); }

 private:
  torch::Tensor inputs(const torch::Tensor& x) const;
  torch::Tensor mean_loss(Network& network, const data::Shard& rows) const;
  torch::Tensor measure(Network& network, const Rows& rows) const;
  Evaluation evaluate();

  bool stops_at_non_finite() const {
    return plan_.trainer.non_finite == training::NonFinite::kStop && plan_.trainer.loss_scale.interval == 0;
  }
  std::int64_t people_s_step() const { return trainer_.steps() + 1; }

  const TrainOptions& options_;
  const Plan& plan_;
  const DataSource& data_;
  Checkpoints checkpoints_;
  DataParallel<std::shared_ptr<Network>> trainer_;
};

// Images travel as bytes; the bytes of a text are what they are.
torch::Tensor Training::State::inputs(const torch::Tensor& x) const {
  if (plan_.model->task == Task::kNextByte || x.scalar_type() != at::kByte) return x;
  return data::normalize(x, data_.byte_scale.mean, data_.byte_scale.std);
}

torch::Tensor Training::State::mean_loss(Network& network, const data::Shard& rows) const {
  const auto loss = at::cross_entropy_loss(scores_of(network, inputs(rows.x), plan_.shape.classes), rows.y.flatten());
  if (stops_at_non_finite()) {
    // The text is made only when it is needed.
    if (const auto value = loss.item<double>(); !std::isfinite(value)) {
      require_finite(value, fmt::format("in step {}, at learning rate {:.4g}", people_s_step(),
                                        plan_.learning_rate(trainer_.steps())));
    }
  }
  return loss;
}

// Sums over the rows: of the loss, of right answers, of answers. Throws NonFiniteError where training does: the last update may
// have ruined the parameters.
torch::Tensor Training::State::measure(Network& network, const Rows& rows) const {
  const auto scores = scores_of(network, inputs(rows.x), plan_.shape.classes);
  const auto answers = rows.y.flatten();
  const auto loss = at::cross_entropy_loss(scores, answers, {}, at::Reduction::Sum).item<double>();
  if (stops_at_non_finite()) {
    require_finite(loss, fmt::format("on the test {}, after step {}", data_.rows, trainer_.steps()));
  }
  const auto correct = scores.argmax(1).eq(answers).sum().item<double>();
  return torch::tensor({loss, correct, static_cast<double>(answers.numel())}, at::kDouble);
}

Evaluation Training::State::evaluate() {
  const Rows rows{.x = data_.splits.test.x, .y = data_.splits.test.y};
  const torch::Tensor sums = trainer_.evaluate(
      rows, [&](std::shared_ptr<Network>& network, const Rows& part) { return measure(*network, part); });
  const auto* values = sums.data_ptr<double>();
  return {.rows = rows.x.size(0),
          .answers = std::llround(values[2]),
          .correct = std::llround(values[1]),
          .loss = values[0] / values[2]};
}

RunResult Training::State::run(const Listener& listener, const std::function<bool()>& should_stop) {
  RunResult result;
  auto began = Clock::now();
  const auto seconds = [&] { return std::chrono::duration<double>(Clock::now() - began).count(); };
  // Leaves the time and the devices' work since out of what is reported.
  const auto evaluate_aside = [&] {
    const auto start = Clock::now();
    add(result.devices, trainer_.statistics());
    const Evaluation evaluation = evaluate();
    trainer_.reset_statistics();
    began += Clock::now() - start;
    return evaluation;
  };

  data::Loader loader = trainer_.loader(data_.splits.train, {.epochs = plan_.epochs, .seed = options_.seed});
  if (const auto found = checkpoints_.newest()) {
    trainer_.restore(*found, loader);
    result.steps = result.resumed = trainer_.steps();
    listener.on_resume(result.steps);
  }
  std::int64_t saved = -1;
  const auto save = [&](std::optional<double> accuracy = {}) {
    checkpoints_.save(trainer_.snapshot(loader), accuracy);
    saved = result.steps;
  };
  while (result.steps < plan_.steps && !should_stop()) {
    const auto start = Clock::now();
    const auto batch = loader.next();
    result.times.data += Clock::now() - start;
    const training::StepReport report = trainer_.step(
        *batch, [&](std::shared_ptr<Network>& network, const data::Shard& rows) { return mean_loss(*network, rows); });
    add(result.times, report.times);
    ++result.steps;
    result.skipped += report.skipped ? 1 : 0;
    result.rows += report.rows;
    listener.on_step({.epoch = batch->epoch, .seconds = seconds(), .report = report});
    if (options_.eval_every > 0 && result.steps % options_.eval_every == 0 && result.steps < plan_.steps) {
      const Evaluation evaluation = evaluate_aside();
      listener.on_evaluation(result.steps, evaluation);
      if (checkpoints_.is_due(result.steps)) save(evaluation.accuracy());
    } else if (checkpoints_.is_due(result.steps)) {
      save();
    }
  }
  result.seconds = seconds();
  // What was trained is safe before anything else is asked of it.
  if (checkpoints_.is_on() && saved != result.steps) save();
  result.test = evaluate_aside();
  if (checkpoints_.is_on()) {
    save(result.test.accuracy());
    checkpoints_.finish();
    result.checkpoint = options_.checkpoint.folder;
  }
  result.interrupted = should_stop();  // in the evaluation as well
  return result;
}

Training::Training(const TrainOptions& options, const Plan& plan, const DataSource& data)
    : state_(std::make_unique<State>(options, plan, data)) {}
Training::~Training() = default;

std::int64_t Training::parameters() const {
  std::int64_t count = 0;
  for (const torch::Tensor& parameter : state_->network().parameters()) count += parameter.numel();
  return count;
}

std::int64_t Training::parameter_bytes() const {
  std::int64_t bytes = 0;
  for (const torch::Tensor& parameter : state_->network().parameters()) {
    bytes += static_cast<std::int64_t>(parameter.nbytes());
  }
  return bytes;
}

RunResult Training::run(const Listener& listener, const std::function<bool()>& should_stop) {
  return state_->run(listener, should_stop);
}

}  // namespace brigade::cli
