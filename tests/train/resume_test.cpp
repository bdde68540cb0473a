// A run that stops and continues from its checkpoint is, bit for bit, the one that never stopped.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <torch/nn/cloneable.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/pimpl.h>
#include <torch/optim/sgd.h>

#include <nlohmann/json.hpp>

#include "brigade/base/error.h"
#include "brigade/guard/checkpointer.h"
#include "brigade/guard/compare.h"
#include "brigade/optim/adam.h"
#include "brigade/optim/lamb.h"
#include "brigade/random/dropout.h"
#include "brigade/train/leaf.h"
#include "support/errors.h"
#include "support/temporary_folder.h"
#include "train/support.h"

namespace brigade::training {
namespace resume_test {

using namespace testing;
using ::testing::HasSubstr;

// Rows enough for steps of unequal size: 100 rows in steps of 24.
data::Dataset dataset() {
  const Rows rows = make_rows(100, 3);
  return {.x = rows.x, .y = rows.y, .classes = 5};
}

// Draws from the leaf's key, so that a step depends on its number too.
at::Tensor dropped_loss(const Mlp& model, const data::Shard& rows) {
  const at::Tensor hidden = at::relu(at::addmm(model.b1, rows.x, model.w1));
  return at::cross_entropy_loss(at::addmm(model.b2, random::dropout(next_leaf_key(), hidden, 0.25), model.w2), rows.y);
}

constexpr std::int64_t kEpochs = 3;

// What a run is known by: every number it reports, and everything it remembers at its end.
struct Outcome {
  std::vector<double> numbers = {};
  guard::Checkpoint end = {};
};

// Goes on to the end of the data, or for `steps`.
template <class Trainer>
Outcome run(Trainer& trainer, data::Loader& loader, std::int64_t steps = 1000) {
  Outcome outcome;
  for (; steps > 0; --steps) {
    const auto batch = loader.next();
    if (!batch) break;
    const StepReport report = trainer.step(*batch, dropped_loss);
    for (const double number : {static_cast<double>(report.step), report.loss, report.gradient_norm, report.clip_factor,
                                report.learning_rate, report.loss_scale, report.noise_scale.value_or(-1)})
      outcome.numbers.push_back(number);
  }
  outcome.end = trainer.snapshot(loader);
  return outcome;
}

// But for the number of devices, which is told to people.
std::vector<std::string> differences(guard::Checkpoint one, guard::Checkpoint other) {
  std::vector<std::string> lines;
  one.state.erase("written_by");
  other.state.erase("written_by");
  for (const auto& difference : guard::compare(one, other).differences) lines.push_back(guard::describe(difference));
  return lines;
}

struct Work {
  std::string name;
  DataParallelOptions options;
};

class Resume : public ::testing::TestWithParam<Work> {
 protected:
  static DataParallelOptions options_on(int devices) {
    DataParallelOptions options = GetParam().options;
    options.global_batch = 24;
    options.logical_shards = 8;
    options.devices = first_devices(devices);
    options.learning_rate = schedule::constant(0.05).warmup(4).cosine(15);
    options.noise_scale_every = 2;
    options.seed = 9;
    return options;
  }
};
INSTANTIATE_TEST_SUITE_P(
    Rules, Resume,
    ::testing::Values(
        Work{"sgd_with_momentum", {.optimizer = optim::sgd({.momentum = 0.9, .weight_decay = 1e-3})}},
        Work{"adam_clipped", {.optimizer = optim::adam({}), .clip = optim::clip_norm(0.5)}},
        Work{"adamw_amsgrad", {.optimizer = optim::adamw({.amsgrad = true})}},
        Work{"lamb_in_groups", {.optimizer = optim::lamb({}), .groups = {optim::exempt_biases_and_norms()}}},
        Work{"dynamic_loss_scaling", {.optimizer = optim::adam({}), .loss_scale = {.initial = 1024, .interval = 4}}},
        Work{"one_bit_with_its_residual",
             {.optimizer = optim::sgd({.momentum = 0.9}), .compress = {.codec = compress::onebit()}}},
        Work{"powersgd_from_step_5",
             {.optimizer = optim::adam({}), .compress = {.codec = compress::powersgd({.rank = 2}), .start_step = 5}}},
        Work{"copies_of_their_own", {.optimizer = optim::adam({}), .share_parameters = false}}),
    [](const auto& test) { return test.param.name; });

TEST_P(Resume, ContinuesAsIfItHadNeverStoppedOnAnyNumberOfDevices) {
  DataParallel whole(make_mlp(), options_on(4));
  data::Loader all = whole.loader(dataset(), {.epochs = kEpochs, .seed = 2});
  const Outcome expected = run(whole, all);
  ASSERT_EQ(whole.steps(), 15);

  for (const auto& [before, after, stop] :
       {std::tuple(4, 4, 7), std::tuple(3, 5, 6), std::tuple(1, 8, 10), std::tuple(8, 1, 1)}) {
    SCOPED_TRACE(std::to_string(before) + " devices, from step " + std::to_string(stop) + " on " +
                 std::to_string(after));
    const TemporaryFolder folder;
    Outcome found;
    {
      DataParallel first(make_mlp(), options_on(before));
      data::Loader loader = first.loader(dataset(), {.epochs = kEpochs, .seed = 2});
      found = run(first, loader, stop);
      first.save(folder.path(), loader);
    }
    Mlp other = make_mlp();  // whose values do not matter
    tree::for_each([](const tree::Path&, at::Tensor& t) { t = t + 1; }, other);
    DataParallel second(other, options_on(after));
    data::Loader loader = second.loader(dataset(), {.epochs = kEpochs, .seed = 2});
    second.load(folder.path(), loader);
    EXPECT_EQ(second.steps(), stop);
    const Outcome rest = run(second, loader);
    found.numbers.insert(found.numbers.end(), rest.numbers.begin(), rest.numbers.end());
    EXPECT_EQ(found.numbers, expected.numbers);
    EXPECT_THAT(differences(rest.end, expected.end), ::testing::IsEmpty());
    for (int replica = 1; replica < after; ++replica) {
      expect_same_bits(values_of(second.replica(0)), values_of(second.replica(static_cast<std::size_t>(replica))),
                       "replica " + std::to_string(replica));
    }
  }
}

// Training goes on, and a checkpoint is of the step at which it was asked for.
TEST_P(Resume, ACheckpointThatIsWrittenMeanwhileIsOfItsStep) {
  const TemporaryFolder folder;
  DataParallel trainer(make_mlp(), options_on(2));
  data::Loader loader = trainer.loader(dataset(), {.epochs = kEpochs, .seed = 2});
  guard::Checkpointer checkpoints({.folder = folder.path(), .keep_last = 100});
  std::vector<guard::Checkpoint> expected;
  while (auto batch = loader.next()) {
    trainer.step(*batch, dropped_loss);
    expected.push_back(trainer.snapshot(loader));
    expected.back().state["note"] = "of the program";
    checkpoints.save(expected.back());
  }
  checkpoints.finish();
  for (const guard::Checkpoint& one : expected) {
    const auto found = guard::load(folder.path() / fmt::format("step-{:08}", one.step));
    EXPECT_TRUE(guard::compare(found, one).equal()) << one.step;
  }
}

struct Extra {
  Mlp mlp;
  at::Tensor scale;
};

// Each parameter counts the updates it had: Adam's correction of one that was unused for a while is not that of the others.
TEST(ResumeOf, AParameterThatWasUnusedForSomeSteps) {
  const DataParallelOptions options = {.optimizer = optim::adam({}),
                                       .learning_rate = schedule::constant(0.05),
                                       .global_batch = 12,
                                       .logical_shards = 4,
                                       .devices = first_devices(2)};
  const auto step = [](DataParallel<Extra>& trainer) {
    const std::int64_t number = trainer.steps();
    trainer.step(make_rows(12, number), [number](const Extra& model, const Rows& rows) {
      const at::Tensor loss = mean_loss(model.mlp, rows);
      return number % 3 == 0 ? loss : loss * model.scale.square().mean();
    });
  };
  const Extra start = {make_mlp(), at::ones({3})};
  DataParallel whole(start, options);
  for (int i = 0; i < 9; ++i) step(whole);

  const TemporaryFolder folder;
  DataParallel first(start, options);
  for (int i = 0; i < 4; ++i) step(first);
  first.save(folder.path());
  DataParallel second(start, options);
  second.load(folder.path());
  for (int i = 0; i < 5; ++i) step(second);
  EXPECT_THAT(differences(second.snapshot(), whole.snapshot()), ::testing::IsEmpty());
}

struct NetImpl : torch::nn::Cloneable<NetImpl> {
  explicit NetImpl(std::int64_t hidden_units = 20) : hidden(hidden_units) { reset(); }
  void reset() override {
    first = register_module("first", torch::nn::Linear(70, hidden));
    second = register_module("second", torch::nn::Linear(hidden, 5));
    frozen = register_parameter("frozen", at::full({5}, 0.5), false);
    mean = register_buffer("mean", at::zeros({70}));
    calls = register_buffer("calls", at::zeros({}, at::kLong));
  }
  at::Tensor forward(const at::Tensor& x) {
    if (is_training()) {
      mean.mul_(0.9).add_(x.detach().mean(0), 0.1);
      calls.add_(1);
    }
    return second(at::relu(first(x - mean))) * frozen;
  }
  std::int64_t hidden;
  torch::nn::Linear first{nullptr}, second{nullptr};
  at::Tensor frozen, mean, calls;
};
TORCH_MODULE(Net);

TEST(ResumeOf, AModuleWithBuffersAndFrozenParameters) {
  const DataParallelOptions options = {
      .optimizer = optim::sgd({.momentum = 0.9}), .per_device_batch = 4, .devices = first_devices(3)};
  const auto step = [](DataParallel<Net>& trainer) {
    trainer.step(make_rows(12, trainer.steps()),
                 [](Net& net, const Rows& rows) { return at::cross_entropy_loss(net->forward(rows.x), rows.y); });
  };
  const auto make = [] {
    torch::manual_seed(5);
    return Net();
  };
  DataParallel whole(make, options);
  whole.replica(0)->frozen.fill_(2);
  for (int i = 0; i < 6; ++i) step(whole);

  const TemporaryFolder folder;
  DataParallel first(make, options);
  first.replica(0)->frozen.fill_(2);
  for (int i = 0; i < 3; ++i) step(first);
  first.save(folder.path());
  DataParallel second([] { return Net(); }, options);
  second.load(folder.path());
  EXPECT_EQ(second.replica(2)->calls.item<std::int64_t>(), 3);
  EXPECT_EQ(second.replica(2)->frozen[0].item<float>(), 2);
  for (int i = 0; i < 3; ++i) step(second);
  EXPECT_THAT(differences(second.snapshot(), whole.snapshot()), ::testing::IsEmpty());
  EXPECT_TRUE(guard::newest(folder.path())->model.contains("first.weight"));
}

// Where a checkpoint is refused, nothing of it was taken.
template <class Trainer>
void expect_refused(Trainer& trainer, const std::filesystem::path& folder, std::initializer_list<std::string> parts) {
  const guard::Checkpoint before = trainer.snapshot();
  expect_error<InvalidArgument>([&] { trainer.load(folder); }, parts);
  EXPECT_TRUE(guard::compare(before, trainer.snapshot()).equal());
}

DataParallelOptions small(const optim::Rule& rule) {
  return {.optimizer = rule, .per_device_batch = 4, .devices = first_devices(2)};
}

TEST(ACheckpointOf, AnotherModelListsWhatDiffers) {
  const TemporaryFolder folder;
  DataParallel saved(make_mlp(), small(optim::sgd({.momentum = 0.9})));
  saved.step(make_rows(8), mean_loss);
  saved.save(folder.path());

  DataParallel wider(make_mlp(70, 66), small(optim::sgd({.momentum = 0.9})));
  expect_refused(wider, folder.path(),
                 {"the checkpoint of step 1 is of another model or optimizer, and nothing was loaded",
                  "model w1: Float[70, 65] in the checkpoint, Float[70, 66] in this run", "model b1: Float[65]",
                  "optimizer momentum_buffer.w2: Float[65, 5] in the checkpoint, Float[66, 5] in this run"});
  DataParallel other([] { return Net(); }, small(optim::sgd({.momentum = 0.9})));
  expect_refused(other, folder.path(),
                 {"model first.weight: the checkpoint has none, this run Float[20, 70]", "and 15 more"});
}

TEST(ACheckpointOf, AnotherOptimizerListsTheStateThatIsMissing) {
  const TemporaryFolder folder;
  DataParallel saved(make_mlp(), small(optim::sgd()));
  saved.save(folder.path());
  DataParallel trainer(make_mlp(), small(optim::adam({})));
  expect_refused(trainer, folder.path(), {"optimizer exp_avg.w1: the checkpoint has none, this run Float[70, 65]"});
  DataParallel with_state(make_mlp(), small(optim::adam({})));
  with_state.step(make_rows(8), mean_loss);
  with_state.save(folder.path());
  DataParallel without(make_mlp(), small(optim::sgd()));
  expect_refused(without, folder.path(), {"optimizer exp_avg.w1: Float[70, 65] in the checkpoint, this run has none"});
}

TEST(ACheckpointOf, OtherOptionsIsRefusedUnlessAskedFor) {
  const TemporaryFolder folder;
  DataParallel saved(make_mlp(), small(optim::sgd()));
  saved.step(make_rows(8), mean_loss);
  saved.save(folder.path());

  DataParallelOptions options = small(optim::sgd({.weight_decay = 0.1}));
  options.learning_rate = schedule::constant(0.5);
  options.devices = first_devices(3);
  DataParallel other(make_mlp(), options);
  expect_refused(
      other, folder.path(),
      {"was trained with other options", "\"global_batch\": 8 in the checkpoint, 12 in this run",
       "\"leaves\": 2 in the checkpoint, 3 in this run", "\"learning_rate\"", "\"optimizer\"", "OtherOptions::kWarn"});
  ::testing::internal::CaptureStderr();
  other.load(folder.path(), {.other_options = OtherOptions::kWarn});
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("\"leaves\": 2 in the checkpoint, 3 in this run"));
  EXPECT_EQ(other.steps(), 1);
  EXPECT_TRUE(same_bits(other.model().w1, saved.model().w1));
}

TEST(ACheckpointOf, AnotherDatasetLeavesTrainerAndLoaderWhereTheyAre) {
  const TemporaryFolder folder;
  DataParallel saved(make_mlp(), small(optim::sgd()));
  data::Loader loader = saved.loader(dataset(), {.epochs = 2});
  for (int i = 0; i < 3; ++i) saved.step(*loader.next(), dropped_loss);
  saved.save(folder.path(), loader);

  DataParallel trainer(make_mlp(), small(optim::sgd()));
  data::Dataset less = dataset();
  less.x = less.x.narrow(0, 0, 50);
  less.y = less.y.narrow(0, 0, 50);
  data::Loader shorter = trainer.loader(less, {.epochs = 2});
  const guard::Checkpoint before = trainer.snapshot(shorter);
  expect_error<InvalidArgument>([&] { trainer.load(folder.path(), shorter); },
                                {"an epoch has 13 steps, and this loader's has 7"});
  EXPECT_TRUE(guard::compare(before, trainer.snapshot(shorter)).equal());

  saved.save(folder.path());
  expect_error<InvalidArgument>([&] { trainer.load(folder.path(), shorter); }, {"has no position of a loader"});
}

TEST(ACheckpointOf, AnOptimizerOfLibtorchIsRefusedWithTheReason) {
  DataParallelOptions options = small(optim::sgd());
  options.torch_optimizer = [](std::vector<at::Tensor> parameters) {
    return std::make_unique<torch::optim::SGD>(std::move(parameters), torch::optim::SGDOptions(0.1));
  };
  DataParallel trainer(make_mlp(), options);
  const TemporaryFolder folder;
  EXPECT_ERROR(trainer.save(folder.path()), InvalidArgument,
               "a checkpoint cannot hold what an optimizer of libtorch remembers");
}

TEST(ACheckpointOf, AProgramThatNotedNoOptionsIsRefusedUnlessAskedFor) {
  DataParallel trainer(make_mlp(), small(optim::sgd()));
  guard::Checkpoint checkpoint = trainer.snapshot();
  for (const nlohmann::json& noted : {nlohmann::json::object(), nlohmann::json(5)}) {
    checkpoint.state["training"] = noted;
    expect_error<InvalidArgument>([&] { trainer.restore(checkpoint); },
                                  {"\"leaves\": nothing in the checkpoint, 2 in this run"});
  }
  checkpoint.state.erase("training");
  expect_error<InvalidArgument>([&] { trainer.restore(checkpoint); }, {"\"seed\": nothing in the checkpoint"});
}

TEST(ACheckpointOf, NoFolderIsAnError) {
  const TemporaryFolder folder;
  DataParallel trainer(make_mlp(), small(optim::sgd()));
  EXPECT_ERROR(trainer.load(folder.path() / "absent"), DataError, "there is no checkpoint to load");
}

}  // namespace resume_test
}  // namespace brigade::training
