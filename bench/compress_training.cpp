// What compression does to what is learned: the CNN of `brigade train`, trained on Fashion-MNIST for three epochs from three seeds with
// each codec, against the same without compression. The goal is a mean accuracy at most one point below.
//
// Usage: bench_compress_training [codec ...], by the names of compress::; all of them without. It takes about a minute a run, and three
// runs a codec.
//
// Four leaves of 32 rows a step, each with its own residual, as on four devices; the bits, and so the accuracies, are the same on any
// number of them. SGD with momentum, its rate scaled with the rows, warmed up over 100 steps, then a cosine to zero: `brigade train`'s.
#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "brigade/brigade.h"
#include "support/report.h"

namespace {

namespace bench = brigade::bench;
using namespace brigade;

constexpr std::int64_t kEpochs = 3;
constexpr std::int64_t kSeeds = 3;
constexpr std::int64_t kRows = 128;
constexpr std::int64_t kLeaves = 4;
constexpr double kPoints = 1;  // of accuracy, in percent, that a codec may cost

struct Cnn {
  torch::Tensor w1, b1, w2, b2, w3, b3, w4, b4;
};

Cnn make_cnn(random::Key key) {
  const auto keys = random::split<4>(key);
  return {.w1 = random::he_normal(keys[0], {32, 1, 3, 3}, random::kTorchFanAxes),
          .b1 = torch::zeros({32}),
          .w2 = random::he_normal(keys[1], {64, 32, 3, 3}, random::kTorchFanAxes),
          .b2 = torch::zeros({64}),
          .w3 = random::he_normal(keys[2], {3136, 128}),
          .b3 = torch::zeros({128}),
          .w4 = random::he_normal(keys[3], {128, 10}),
          .b4 = torch::zeros({10})};
}

torch::Tensor block(const torch::Tensor& x, const torch::Tensor& w, const torch::Tensor& b) {
  return at::max_pool2d(at::relu(at::conv2d(x, w, b, /*stride=*/1, /*padding=*/1)), 2);
}

torch::Tensor scores(const Cnn& p, const torch::Tensor& images) {
  const auto x = data::normalize(images, data::kFashionMnistMean, data::kFashionMnistStd).reshape({-1, 1, 28, 28});
  const auto h = block(block(x, p.w1, p.b1), p.w2, p.b2).reshape({-1, 3136});
  return at::addmm(p.b4, at::relu(at::addmm(p.b3, h, p.w3)), p.w4);
}

struct Entry {
  std::string name;
  comm::Codec codec = {};  // none: without compression
};

struct Run {
  double accuracy = 0;  // in percent, of the test images
  double times_smaller = 1;
  double relative_error = 0;  // mean over the steps
};

struct TestRows {
  torch::Tensor x, y;
};

Run train(const Entry& entry, std::int64_t seed, const data::Splits& data) {
  const std::int64_t steps = kEpochs * ((data.train.rows() + kRows - 1) / kRows);
  DataParallel trainer(
      make_cnn(random::key(1000 + seed)),
      {.optimizer = optim::sgd({.momentum = 0.9}),
       .learning_rate = schedule::linear_scaling({.base = 0.02, .base_batch = 64}).warmup(100).cosine(steps),
       .global_batch = kRows,
       .logical_shards = kLeaves,
       .compress = {.codec = entry.codec},
       .seed = seed});
  Run run;
  double wire = 0, whole = 0, error = 0;
  for (auto& batch : trainer.loader(data.train, {.epochs = kEpochs, .seed = seed})) {
    const StepReport report = trainer.step(
        batch, [](const Cnn& p, const data::Shard& rows) { return at::cross_entropy_loss(scores(p, rows.x), rows.y); });
    if (!report.compression) continue;
    wire += static_cast<double>(report.compression->wire_bytes);
    whole += static_cast<double>(report.compression->uncompressed_bytes);
    error += report.compression->relative_error;
  }
  const auto right =
      trainer.evaluate(TestRows{data.test.x, data.test.y.to(at::kLong)},
                       [](const Cnn& p, const TestRows& rows) { return scores(p, rows.x).argmax(1).eq(rows.y).sum(); });
  run.accuracy = 100 * right.item<double>() / static_cast<double>(data.test.rows());
  if (wire > 0) run.times_smaller = whole / wire;
  run.relative_error = error / static_cast<double>(steps);
  return run;
}

double mean_of(const std::vector<Run>& runs, double Run::*member) {
  double sum = 0;
  for (const Run& run : runs) sum += run.*member;
  return sum / static_cast<double>(runs.size());
}

std::vector<Run> train_all(const Entry& entry, const data::Splits& data) {
  std::vector<Run> runs;
  for (std::int64_t seed = 0; seed < kSeeds; ++seed) {
    const auto start = std::chrono::steady_clock::now();
    runs.push_back(train(entry, seed, data));
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    fmt::print(stderr, "{}, seed {}: {:.2f} % in {:.0f} s\n", entry.name, seed, runs.back().accuracy, took.count());
  }
  return runs;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<Entry> all = {{"fp16", compress::fp16()}, {"bf16", compress::bf16()},
                                  {"int8", compress::int8()}, {"onebit", compress::onebit()},
                                  {"topk", compress::topk()}, {"powersgd", compress::powersgd()}};
  const std::vector<std::string> wanted(argv + 1, argv + argc);
  for (const std::string& name : wanted) {
    if (std::any_of(all.begin(), all.end(), [&](const Entry& entry) { return entry.name == name; })) continue;
    fmt::print(stderr,
               "bench_compress_training: no codec \"{}\": there are fp16, bf16, int8, onebit, topk and powersgd\n",
               name);
    return 2;
  }
  bench::Report report("compress_training");
  const data::Splits data = data::fashion_mnist();
  const std::vector<Run> plain = train_all({.name = "uncompressed"}, data);
  const double expected = mean_of(plain, &Run::accuracy);
  fmt::print("{:<12} {:>9} {:>9} {:>10} {:>14} {:>14}\n", "codec", "mean %", "points", "by seed %", "times smaller",
             "relative error");
  const auto print = [&](const std::string& name, const std::vector<Run>& runs) {
    const double mean = mean_of(runs, &Run::accuracy);
    std::string seeds;
    for (const Run& run : runs) seeds += fmt::format(" {:.2f}", run.accuracy);
    fmt::print("{:<12} {:>9.2f} {:>+9.2f} {} {:>14.1f} {:>14.3f}\n", name, mean, mean - expected, seeds,
               mean_of(runs, &Run::times_smaller), mean_of(runs, &Run::relative_error));
    std::fflush(stdout);
  };
  print("uncompressed", plain);
  for (const Entry& entry : all) {
    if (!wanted.empty() && std::find(wanted.begin(), wanted.end(), entry.name) == wanted.end()) continue;
    const std::vector<Run> runs = train_all(entry, data);
    print(entry.name, runs);
    bench::Row row = {
        .name = entry.name + ": accuracy", .ours = mean_of(runs, &Run::accuracy), .peer = expected, .unit = "%"};
    row.ratio = row.ours / expected;
    row.ratio_min = row.ratio_max = row.ratio;
    for (const Run& run : runs) {
      row.ratio_min = std::min(row.ratio_min, run.accuracy / expected);
      row.ratio_max = std::max(row.ratio_max, run.accuracy / expected);
    }
    row.goal = (expected - kPoints) / expected;
    row.judged = true;
    row.about = {{"times_smaller", mean_of(runs, &Run::times_smaller)},
                 {"relative_error", mean_of(runs, &Run::relative_error)}};
    report.add(std::move(row));
  }
  return report.finish();
}
