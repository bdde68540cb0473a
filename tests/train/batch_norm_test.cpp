// Batch normalization over leaves: values, gradients and running statistics of the whole batch, whoever carries which part.
#include "brigade/train/batch_norm.h"

#include <gmock/gmock.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/serialize.h>

#include <sstream>

#include "brigade/base/error.h"
#include "brigade/lax/collectives.h"
#include "brigade/train/leaf.h"
#include "brigade/transform/pmap.h"
#include "support/cases.h"
#include "support/errors.h"
#include "train/support.h"

namespace brigade::training {
namespace batch_norm_test {

using namespace testing;

bool close(const at::Tensor& a, const at::Tensor& b, double tolerance = 2e-5) {
  return a.sizes() == b.sizes() && at::allclose(a.to(at::kDouble), b.to(at::kDouble), tolerance, tolerance);
}

struct Outcome {
  at::Tensor y, dx, dweight, dbias, running_mean, running_var;
};

// One step of a layer on leaves that have `counts` rows of x, with the loss sum(y * w).
Outcome on_leaves(const nn::SyncBatchNorm& like, const at::Tensor& x, const at::Tensor& w,
                  const std::vector<std::int64_t>& counts, int devices) {
  const auto leaves = static_cast<std::int64_t>(counts.size());
  DataParallel trainer([&] { return nn::SyncBatchNorm(std::dynamic_pointer_cast<nn::BatchNormImpl>(like->clone())); },
                       {.global_batch = leaves, .logical_shards = leaves, .devices = first_devices(devices)});
  const auto xs = x.split_with_sizes(counts), ws = w.split_with_sizes(counts);
  std::vector<at::Tensor> ys(xs.size()), inputs(xs.size());
  trainer.step(at::arange(leaves), [&](nn::SyncBatchNorm& layer, const at::Tensor& rows) {
    const auto leaf = static_cast<std::size_t>(rows[0].item<std::int64_t>());
    inputs[leaf] = xs[leaf].clone().requires_grad_();
    const at::Tensor y = layer(inputs[leaf]);
    ys[leaf] = y.detach();
    return sum_over((y * ws[leaf]).sum(), 1.0 / static_cast<double>(leaves));  // 1 in all
  });
  std::vector<at::Tensor> dx;
  for (const at::Tensor& input : inputs) dx.push_back(input.grad());
  const auto gradients = trainer.gradients();
  const nn::BatchNormImpl& layer = *trainer.model();
  return {at::cat(ys), at::cat(dx), gradients[0].tensor, gradients[1].tensor, layer.running_mean, layer.running_var};
}

nn::SyncBatchNorm recorded_layer(const nlohmann::json& one, double momentum) {
  const at::Tensor scale = cases::tensor_of(one.at("scale"));
  nn::SyncBatchNorm layer(scale.size(0), {.eps = one.at("eps").get<double>(), .momentum = momentum});
  const at::NoGradGuard no_grad;
  layer->weight.copy_(scale);
  layer->bias.copy_(cases::tensor_of(one.at("bias")));
  return layer;
}

void expect_recorded(const Outcome& outcome, const nlohmann::json& one) {
  EXPECT_TRUE(close(outcome.y, cases::tensor_of(one.at("out"))));
  EXPECT_TRUE(close(outcome.dweight, cases::tensor_of(one.at("grad_scale"))));
  EXPECT_TRUE(close(outcome.dbias, cases::tensor_of(one.at("grad_bias"))));
  EXPECT_TRUE(close(outcome.dx, cases::tensor_of(one.at("grad_in")).view_as(outcome.dx)));
  EXPECT_TRUE(close(outcome.running_mean, cases::tensor_of(one.at("running_mean"))));
}

TEST(SyncBatchNorm, AgreesWithRecordedValuesOfTorchOverUnevenShards) {
  const auto file = cases::load("torch/batchnorm.json");
  for (const auto& one : file.at("cases")) {
    const auto counts = one.at("samples_per_device").get<std::vector<std::int64_t>>();
    for (int devices = 1; devices <= static_cast<int>(counts.size()); ++devices) {
      const Outcome outcome =
          on_leaves(recorded_layer(one, one.at("momentum").get<double>()), cases::tensor_of(one.at("in")),
                    cases::tensor_of(one.at("cotangent")), counts, devices);
      expect_recorded(outcome, one);
      EXPECT_TRUE(close(outcome.running_var, cases::tensor_of(one.at("running_var"))));
    }
  }
}

TEST(SyncBatchNorm, AgreesWithRecordedValuesOfFlax) {
  const auto file = cases::load("jax/batchnorm.json");
  for (const auto& one : file.at("cases")) {
    const at::Tensor x = cases::tensor_of(one.at("in"));
    const double keeps = one.at("momentum").get<double>();  // flax's is the weight of what was there
    const std::vector<std::int64_t> counts(static_cast<std::size_t>(x.size(0)), x.size(1));
    for (int devices = 1; devices <= x.size(0); ++devices) {
      const Outcome outcome = on_leaves(recorded_layer(one, 1 - keeps), x.flatten(0, 1),
                                        cases::tensor_of(one.at("cotangent")).flatten(0, 1), counts, devices);
      expect_recorded(outcome, one);
      const auto values = static_cast<double>(x.size(0) * x.size(1));
      const at::Tensor biased = (cases::tensor_of(one.at("running_var_biased")) - keeps) / (1 - keeps);
      EXPECT_TRUE(close(outcome.running_var, keeps + (1 - keeps) * biased * (values / (values - 1))));
    }
  }
}

struct Batch {
  at::Tensor x, w;
};

Batch make_batch(std::int64_t rows, std::vector<std::int64_t> shape, std::int64_t seed,
                 at::ScalarType dtype = at::kFloat) {
  shape.insert(shape.begin(), rows);
  const random::Key key = random::fold_in(random::key(5), seed);
  return {(random::normal(random::fold_in(key, 0), shape) * 3 + 7).to(dtype),
          random::normal(random::fold_in(key, 1), shape).to(dtype)};
}

// A layer behind a parameter, through which the gradient of its input shows. A mean over rows.
template <class Layer>
struct BehindScaleImpl : torch::nn::Module {
  explicit BehindScaleImpl(Layer norm) : layer(this->register_module("layer", norm)) {
    scale = this->register_parameter("scale", at::full({}, 1.5));
  }
  at::Tensor loss(const Batch& batch) { return (layer(batch.x * scale) * batch.w).flatten(1).sum(1).mean(); }
  Layer layer;
  at::Tensor scale;
};
template <class Layer>
using BehindScale = std::shared_ptr<BehindScaleImpl<Layer>>;

template <class Layer>
BehindScale<Layer> behind_scale(Layer layer) {
  return std::make_shared<BehindScaleImpl<Layer>>(layer);
}

void expect_close_tensors(torch::nn::Module& ours, torch::nn::Module& theirs) {
  const auto expect_close = [](const auto& own, const auto& other) {
    for (const auto& item : other) {
      if (!item.value().defined()) continue;
      EXPECT_TRUE(close(*own.find(item.key()), item.value())) << item.key();
    }
  };
  expect_close(ours.named_parameters(), theirs.named_parameters());
  expect_close(ours.named_buffers(), theirs.named_buffers());
}

// Three steps, the last one short, as one layer of libtorch on the whole batch.
template <class Peer>
void expect_as_on_the_whole_batch(const torch::nn::BatchNormOptions& options, const std::vector<std::int64_t>& shape,
                                  int devices) {
  const auto alone = behind_scale(Peer(options));
  DataParallel trainer([&] { return behind_scale(nn::SyncBatchNorm(options)); },
                       {.learning_rate = schedule::constant(0.1),
                        .global_batch = 12,
                        .logical_shards = 4,
                        .devices = first_devices(devices)});
  for (int step = 0; step < 3; ++step) {
    const Batch batch = make_batch(step == 2 ? 7 : 12, shape, step);
    const StepReport report = trainer.step(batch, [](auto& model, const Batch& rows) { return model->loss(rows); });
    alone->zero_grad();
    const at::Tensor loss = alone->loss(batch);
    loss.backward();
    EXPECT_NEAR(report.loss, loss.template item<double>(), 1e-4);
    const at::NoGradGuard no_grad;
    for (at::Tensor& parameter : alone->parameters()) {
      if (parameter.defined()) parameter.sub_(parameter.grad(), 0.1);
    }
    expect_close_tensors(*trainer.model(), *alone);
  }
  alone->eval();
  const Batch batch = make_batch(5, shape, 9);
  const at::Tensor sum = trainer.evaluate(
      batch, [](auto& model, const Batch& rows) { return model->loss(rows) * static_cast<double>(rows.x.size(0)); });
  if (options.track_running_stats()) {  // else each leaf has its own statistics
    EXPECT_NEAR(sum.item<double>() / 5, alone->loss(batch).template item<double>(), 1e-4);
  }
}

TEST(SyncBatchNorm, IsTorchsOnTheWholeBatch) {
  using Options = torch::nn::BatchNormOptions;
  for (const Options& options : {Options(6), Options(6).momentum(c10::nullopt).eps(0.1), Options(6).affine(false),
                                 Options(6).momentum(0.3).track_running_stats(false)}) {
    for (const int devices : {1, 3, 4}) {
      expect_as_on_the_whole_batch<torch::nn::BatchNorm1d>(options, {6}, devices);
      expect_as_on_the_whole_batch<torch::nn::BatchNorm1d>(options, {6, 5}, devices);
      expect_as_on_the_whole_batch<torch::nn::BatchNorm2d>(options, {6, 4, 3}, devices);
      expect_as_on_the_whole_batch<torch::nn::BatchNorm3d>(options, {6, 2, 3, 2}, devices);
    }
  }
}

// Five leaves of 2 rows in groups, as one layer of libtorch that sees one group after the other.
template <class Layer>
void expect_as_group_after_group(const Layer& layer, std::int64_t group) {
  for (const int devices : {1, 2, 3, 5}) {
    const auto alone = behind_scale(torch::nn::BatchNorm1d(6));
    DataParallel trainer(
        [&] { return behind_scale(Layer(std::dynamic_pointer_cast<nn::BatchNormImpl>(layer->clone()))); },
        {.learning_rate = schedule::constant(0.1),
         .global_batch = 10,
         .logical_shards = 5,
         .devices = first_devices(devices)});
    const Batch batch = make_batch(10, {6}, 1);
    trainer.step(batch, [](auto& model, const Batch& rows) { return model->loss(rows); });
    for (std::int64_t begin = 0; begin < 10; begin += 2 * group) {
      const std::int64_t rows = std::min(2 * group, 10 - begin);
      (alone->loss({batch.x.narrow(0, begin, rows), batch.w.narrow(0, begin, rows)}) * rows / 10).backward();
    }
    const at::NoGradGuard no_grad;
    for (at::Tensor& parameter : alone->parameters()) parameter.sub_(parameter.grad(), 0.1);
    for (std::size_t i = 0; i < static_cast<std::size_t>(devices); ++i)
      expect_close_tensors(*trainer.replica(i), *alone);
  }
}

TEST(SyncBatchNorm, OfGroupsIsTorchsOnOneGroupAfterTheOther) {
  expect_as_group_after_group(nn::SyncBatchNorm(6, {.group = 2}), 2);
  expect_as_group_after_group(nn::SyncBatchNorm(6, {.group = 3}), 3);
}

TEST(GhostBatchNorm, IsTorchsOnOneLeafAfterTheOther) { expect_as_group_after_group(nn::GhostBatchNorm(6), 1); }

template <class Layer>
std::vector<at::Tensor> running(const Layer& layer) {
  return {layer->running_mean.clone(), layer->running_var.clone(), layer->num_batches_tracked.clone()};
}

TEST(RunningStatistics, AreThoseBeforeAStepThatThrowsOrIsSkipped) {
  for (const int devices : {1, 2, 4}) {
    for (const NonFinite non_finite : {NonFinite::kStop, NonFinite::kSkip}) {
      DataParallel trainer(
          [] { return behind_scale(nn::SyncBatchNorm(6, {.group = 2})); },
          {.global_batch = 8, .logical_shards = 4, .devices = first_devices(devices), .non_finite = non_finite});
      const auto loss = [](auto& model, const Batch& rows) { return model->loss(rows); };
      trainer.step(make_batch(8, {6}, 1), loss);
      const auto before = running(trainer.model()->layer);
      EXPECT_EQ(before[2].item<std::int64_t>(), 2);
      EXPECT_ERROR(trainer.step(make_batch(8, {6}, 2),
                                [&](auto& model, const Batch& rows) {
                                  const at::Tensor value = loss(model, rows);
                                  if (leaf_index() == 3) throw std::runtime_error("after its forward");
                                  return value;
                                }),
                   std::runtime_error, "after its forward");
      const auto with_nan = [&](auto& model, const Batch& rows) { return loss(model, rows) / 0.0; };
      if (non_finite == NonFinite::kStop) {
        EXPECT_ERROR(trainer.step(make_batch(8, {6}, 2), with_nan), NonFiniteError, "");
      } else {
        EXPECT_TRUE(trainer.step(make_batch(8, {6}, 2), with_nan).skipped);
      }
      for (std::size_t i = 0; i < static_cast<std::size_t>(devices); ++i)
        expect_same_bits(running(trainer.replica(i)->layer), before);
      trainer.step(make_batch(8, {6}, 3), loss);
      for (std::size_t i = 0; i < static_cast<std::size_t>(devices); ++i) {
        expect_same_bits(running(trainer.replica(i)->layer), running(trainer.model()->layer));
        EXPECT_EQ(trainer.replica(i)->layer->num_batches_tracked.template item<std::int64_t>(), 4);
      }
    }
  }
}

// Two calls in a forward are two batches, one after the other.
TEST(RunningStatistics, TakeInEveryCall) {
  for (const int devices : {1, 3}) {
    torch::nn::BatchNorm1d alone(6);
    DataParallel trainer([] { return behind_scale(nn::SyncBatchNorm(6)); }, {.learning_rate = schedule::constant(1e-30),
                                                                             .global_batch = 6,
                                                                             .logical_shards = 3,
                                                                             .devices = first_devices(devices)});
    const Batch batch = make_batch(6, {6}, 1);
    trainer.step(batch, [](auto& model, const Batch& rows) {
      const at::Tensor first = model->loss(rows);
      return first + model->layer(rows.w).square().mean();
    });
    alone(batch.x * 1.5);
    alone(batch.w);
    expect_close_tensors(*trainer.model()->layer, *alone);
  }
}

TEST(SyncBatchNorm, OfAPmapIsOverItsDevices) {
  for (const std::int64_t group : {0, 1, 2}) {
    const Batch batch = make_batch(12, {6}, 1);
    std::vector<nn::SyncBatchNorm> layers;
    for (int i = 0; i < 3; ++i) layers.emplace_back(6, nn::BatchNormOptions{.group = group});
    const auto y =
        pmap([&](at::Tensor x) { return layers[static_cast<std::size_t>(lax::axis_index("devices"))](x).detach(); },
             {.axis_name = "devices"})(batch.x.reshape({3, 4, 6}));
    torch::nn::BatchNorm1d alone(6);
    std::vector<at::Tensor> expected;
    for (std::int64_t begin = 0; begin < 12; begin += group == 0 ? 12 : 4 * group)
      expected.push_back(
          alone(batch.x.narrow(0, begin, std::min<std::int64_t>(12 - begin, group == 0 ? 12 : 4 * group))));
    const auto parts = at::cat(expected).split(4);
    for (int i = 0; i < 3; ++i) {
      EXPECT_TRUE(close(y[i].detach(), parts[static_cast<std::size_t>(i)].detach()));
      expect_close_tensors(*layers[static_cast<std::size_t>(i)], *alone);
    }
  }
}

TEST(SyncBatchNorm, AloneIsTorchs) {
  for (const at::ScalarType dtype : {at::kFloat, at::kDouble}) {
    nn::SyncBatchNorm ours(6);
    torch::nn::BatchNorm2d theirs(6);
    ours->to(dtype);
    theirs->to(dtype);
    for (int call = 0; call < 3; ++call) {
      Batch batch = make_batch(5, {6, 4, 3}, call, dtype);
      at::Tensor x = batch.x.contiguous(at::MemoryFormat::ChannelsLast).requires_grad_();
      at::Tensor peer_x = batch.x.clone().requires_grad_();
      const at::Tensor y = ours(x), peer_y = theirs(peer_x);
      (y * batch.w).sum().backward();
      (peer_y * batch.w).sum().backward();
      EXPECT_TRUE(close(y, peer_y, dtype == at::kDouble ? 1e-10 : 2e-5));
      EXPECT_TRUE(close(x.grad(), peer_x.grad(), dtype == at::kDouble ? 1e-10 : 2e-5));
      EXPECT_TRUE(close(ours->weight.grad(), theirs->weight.grad()));
    }
    expect_close_tensors(*ours, *theirs);
    // Either loads what the other saved.
    std::stringstream file;
    torch::save(theirs, file);
    nn::SyncBatchNorm loaded(6);
    loaded->to(dtype);
    torch::load(loaded, file);
    expect_close_tensors(*loaded, *theirs);
  }
}

// Values far from zero: a sum of squares in float32 would lose the variance.
TEST(SyncBatchNorm, KeepsItsPrecisionFarFromZero) {
  const at::Tensor x = random::normal(random::key(3), {12, 4}) + 1000;
  const Outcome outcome = on_leaves(nn::SyncBatchNorm(4), x, random::normal(random::key(4), {12, 4}), {3, 4, 1, 4}, 2);
  const at::Tensor exact = x.to(at::kDouble);
  const at::Tensor expected = (exact - exact.mean(0)) / at::sqrt(exact.var(0, false) + 1e-5);
  EXPECT_TRUE(close(outcome.y, expected, 2e-3));
  EXPECT_TRUE(close(outcome.running_var, 0.9 + 0.1 * exact.var(0, true), 1e-5));
}

TEST(SyncBatchNorm, TakesHalfPrecisionInAndGivesItOut) {
  nn::SyncBatchNorm layer(6);
  const at::Tensor x = make_batch(8, {6, 3, 3}, 1).x;
  const at::Tensor y = layer(x.to(at::kBFloat16));
  EXPECT_EQ(y.scalar_type(), at::kBFloat16);
  EXPECT_TRUE(close(y.detach(), torch::nn::BatchNorm2d(6)(x).detach(), 0.05));
  layer->eval();
  EXPECT_EQ(layer(x.to(at::kBFloat16)).scalar_type(), at::kBFloat16);
}

TEST(SyncBatchNorm, SaysWhatIsWrong) {
  nn::SyncBatchNorm layer(6);
  EXPECT_ERROR(layer(at::ones({3, 5})), ShapeError, "of 6 features: x is [3, 5]; give [N, 6]");
  EXPECT_ERROR(layer(at::ones({6})), ShapeError, "x is [6]");
  EXPECT_ERROR(layer(at::ones({2, 6}, at::kLong)), ShapeError, "x is Long");
  EXPECT_ERROR(layer(at::ones({1, 6})), InvalidArgument, "one value a channel");
  EXPECT_ERROR(nn::SyncBatchNorm(0), InvalidArgument, "of 0 features");
  EXPECT_ERROR(nn::SyncBatchNorm(6, {.group = -1}), InvalidArgument, "group is -1");
  const at::Tensor x = at::rand({4, 6}).requires_grad_();
  EXPECT_ERROR(torch::autograd::grad({layer(x).square().sum()}, {x}, {}, true, /*create_graph=*/true), InvalidArgument,
               "no second derivative");
}

TEST(GhostBatchNorm, OfALeafWithOneRowSaysWhatToDo) {
  DataParallel trainer([] { return behind_scale(nn::GhostBatchNorm(6)); },
                       {.global_batch = 8, .logical_shards = 4, .devices = first_devices(2)});
  EXPECT_ERROR(trainer.step(make_batch(7, {6}, 1), [](auto& model, const Batch& rows) { return model->loss(rows); }),
               InvalidArgument, "Give the last batch of an epoch more rows");
}

TEST(SyncBatchNorm, PrintsAndClones) {
  std::stringstream text;
  text << *nn::SyncBatchNorm(6, {.momentum = std::nullopt, .group = 4}) << *nn::GhostBatchNorm(3);
  EXPECT_EQ(text.str(),
            "brigade::nn::SyncBatchNorm(6, eps=1e-05, momentum=none, affine=true, track_running_stats=true, group=4)"
            "brigade::nn::GhostBatchNorm(3, eps=1e-05, momentum=0.1, affine=true, track_running_stats=true)");
}

}  // namespace batch_norm_test
}  // namespace brigade::training
