// The same bits on any number of devices, for as many steps as one likes: each network of `brigade train` with the rule that is
// usual for it, on one device and then on others, with parameters shared and not, with buckets of several sizes. Losses,
// metrics, norms, clipping factors, noise scales and digests of parameters and optimizer state are compared after every step.
#include <ATen/ATen.h>
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "brigade/data/fashion_mnist.h"
#include "brigade/data/normalize.h"
#include "brigade/optim/adam.h"
#include "brigade/random/distributions.h"
#include "brigade/train/data_parallel.h"
#include "models/models.h"

namespace {

using namespace brigade;

constexpr int kMostDevices = 8;
constexpr std::int64_t kRowsPerLeaf = 3;

struct Work {
  std::string name;
  std::string model;
  double dropout = 0;
  cli::Norm norm = cli::Norm::kStep;
  DataParallelOptions options = {};
};

const std::vector<Work>& works() {
  static const std::vector<Work> all = {
      {.name = "mlp, SGD",
       .model = "mlp",
       .options = {.optimizer = optim::sgd({.momentum = 0.9, .weight_decay = 1e-4}),
                   .learning_rate = schedule::constant(0.05)}},
      {.name = "cnn with dropout, Adam",
       .model = "cnn",
       .dropout = 0.3,
       .options = {.optimizer = optim::adam({}), .learning_rate = schedule::constant(1e-3)}},
      {.name = "resnet18 with SyncBatchNorm, SGD",
       .model = "resnet18",
       .options = {.optimizer = optim::sgd({.momentum = 0.9}), .learning_rate = schedule::constant(0.02)}},
      {.name = "transformer, AdamW and clipping",
       .model = "transformer",
       .dropout = 0.1,
       .options = {
           .optimizer = optim::adamw({}), .learning_rate = schedule::constant(1e-3), .clip = optim::clip_norm(0.5)}}};
  return all;
}

struct Rows {
  at::Tensor x, y;
};

Rows rows_of(const cli::Model& model, std::int64_t step, std::int64_t count) {
  if (model.task == cli::Task::kNextByte) {
    constexpr std::int64_t kLength = 64;
    const auto text = random::randint(random::fold_in(random::key(3), step), {count, kLength + 1}, 32, 127);
    return {text.narrow(1, 0, kLength).to(at::kByte), text.narrow(1, 1, kLength).to(at::kLong)};
  }
  static const data::Dataset images = data::fashion_mnist().train;
  const std::int64_t first = step * count % (images.rows() - count);
  return {data::normalize(images.x.narrow(0, first, count), data::kFashionMnistMean, data::kFashionMnistStd),
          images.y.narrow(0, first, count).to(at::kLong)};
}

training::Loss loss_of(const std::shared_ptr<cli::Network>& network, const Rows& rows) {
  const at::Tensor scores = network->forward(rows.x).flatten(0, -2);
  const at::Tensor answers = rows.y.flatten();
  return training::mean_over(at::cross_entropy_loss(scores, answers), static_cast<double>(answers.numel()))
      .with("right", scores.argmax(1).eq(answers).sum().item<double>(), static_cast<double>(answers.numel()));
}

// What a step says of itself, but for its times.
std::string text_of(const StepReport& report) {
  std::string text = fmt::format("loss {} norm {} clip {} noise scale {}", report.loss, report.gradient_norm,
                                 report.clip_factor, report.noise_scale.value_or(0));
  for (const auto& [name, value] : report.metrics) text += fmt::format(" {} {}", name, value);
  return text + fmt::format(" digest {:016x}", report.digest.value());
}

struct Variant {
  int devices = 1;
  bool shares = true;
  std::size_t bucket_bytes = std::size_t{25} << 20;

  std::string text() const {
    return fmt::format("{} devices, {}, buckets of {} bytes", devices, shares ? "shared parameters" : "copies",
                       bucket_bytes);
  }
};

std::vector<std::string> run(const Work& work, const Variant& variant, std::int64_t shards, std::int64_t steps) {
  const cli::Model& model = cli::model_named(work.model);
  DataParallelOptions options = work.options;
  options.logical_shards = shards;
  options.global_batch = shards * kRowsPerLeaf;
  options.devices = {devices().begin(), devices().begin() + variant.devices};
  options.share_parameters = variant.shares;
  options.first_bucket_bytes = options.bucket_bytes = variant.bucket_bytes;
  options.noise_scale_every = 1;
  const cli::DataShape shape = model.task == cli::Task::kNextByte ? cli::DataShape{.row = {64}, .classes = 256}
                                                                  : cli::DataShape{.row = {28, 28}, .classes = 10};
  const cli::NetworkOptions network = {.key = random::key(1), .norm = work.norm, .dropout = work.dropout};
  DataParallel trainer([&] { return model.make(shape, network); }, options);
  std::vector<std::string> lines;
  for (std::int64_t step = 0; step < steps; ++step) {
    // Every fifth step is a short one, as at the end of an epoch, whose last leaf has two rows.
    const bool is_short = step % 5 == 4 || step + 1 == steps;
    const std::int64_t rows = is_short ? shards / 2 * kRowsPerLeaf + 2 : options.global_batch;
    lines.push_back(text_of(trainer.step(rows_of(model, step, rows), loss_of)));
  }
  return lines;
}

// Throws with the first step that differs.
void expect_same(const std::vector<std::string>& lines, const std::vector<std::string>& expected,
                 const std::string& what) {
  for (std::size_t step = 0; step < expected.size(); ++step) {
    if (lines[step] == expected[step]) continue;
    throw std::runtime_error(fmt::format("{}: step {} differs\n  one device: {}\n  this run:   {}", what, step,
                                         expected[step], lines[step]));
  }
}

// Each other number of devices with copies and with shared parameters, and over all of them three sizes of buckets.
std::vector<Variant> variants(const std::vector<int>& counts) {
  constexpr std::size_t kSizes[] = {std::size_t{1}, std::size_t{1} << 16, std::size_t{25} << 20};
  std::vector<Variant> all;
  for (const int devices : counts) {
    for (const bool shares : {true, false})
      all.push_back({.devices = devices, .shares = shares, .bucket_bytes = kSizes[all.size() % std::size(kSizes)]});
  }
  return all;
}

void check(const Work& work, std::int64_t shards, const std::vector<int>& counts, std::int64_t steps) {
  const auto expected = run(work, {}, shards, steps);
  for (const Variant& variant : variants(counts)) {
    const std::string what = fmt::format("{}, {} logical shards, {}", work.name, shards, variant.text());
    expect_same(run(work, variant, shards, steps), expected, what);
    fmt::print("{}: {} steps, the same bits\n", what, steps);
    std::fflush(stdout);
  }
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App program("Trains each network on several numbers of devices and compares bits.");
  std::int64_t steps = 50;
  std::string model;
  bool brief = false;
  program.add_option("--steps", steps, "of each run")->capture_default_str()->check(CLI::Range(1, 1'000'000));
  program.add_option("--model", model, "only this one: mlp, cnn, resnet18 or transformer");
  program.add_flag("--brief", brief, "fewer numbers of devices");
  CLI11_PARSE(program, argc, argv);
  try {
    if (!model.empty()) cli::model_named(model);
    set_cpu_devices(kMostDevices);
    for (const Work& work : works()) {
      if (!model.empty() && work.model != model) continue;
      check(work, 8, brief ? std::vector{3, 8} : std::vector{2, 3, 4, 5, 8}, steps);
      if (!brief) check(work, 6, {2, 3}, steps);
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "soak_invariance: %s\n", error.what());
    return 1;
  }
}
