// Memory that changes by itself is found before the next update, wherever it lies, and can be put back.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <torch/optim/adam.h>

#include <atomic>
#include <bit>
#include <cstring>
#include <random>

#include "brigade/base/error.h"
#include "brigade/optim/adam.h"
#include "support/errors.h"
#include "train/support.h"

namespace brigade::training {
namespace audit_test {

using namespace testing;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr int kDevices = 3;

DataParallelOptions options_of(bool share, Audit audit = {}) {
  return {.optimizer = optim::adam({}),
          .learning_rate = schedule::constant(0.01),
          .global_batch = 12,
          .logical_shards = 6,
          .devices = first_devices(kDevices),
          .share_parameters = share,
          .audit = audit};
}

// Few enough elements that all bits of a block are tried quickly.
Mlp make_small_mlp() { return make_mlp(20, 9, 5); }
Rows small_rows(std::int64_t seed) { return make_rows(12, seed, 20, 5); }

void flip(const at::Tensor& tensor, std::int64_t element, int bit) {
  auto* const words = static_cast<std::uint32_t*>(tensor.data_ptr());
  words[element] ^= std::uint32_t{1} << bit;
}

std::string number(float value) { return fmt::format("{}", static_cast<double>(value)); }

// One flip of one of everything that a trainer keeps.
struct Place {
  std::string name;
  at::Tensor tensor;
  int replica = -1;  // of a parameter that each device has a copy of
};

std::vector<Place> places_of(DataParallel<Mlp>& trainer, bool share) {
  std::vector<Place> places;
  for (int r = 0; r < (share ? 1 : kDevices); ++r) {
    const auto paths = tree::paths(trainer.replica(0));
    const auto tensors = tree::flatten(trainer.replica(static_cast<std::size_t>(r)));
    for (std::size_t i = 0; i < tensors.size(); ++i)
      places.push_back({"parameter " + paths[i], tensors[i].detach(), share ? -1 : r});
  }
  for (const auto& [name, tensor] : trainer.optimizer_state()) places.push_back({"optimizer state " + name, tensor});
  return places;
}

class FlippedBits : public ::testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Audit, FlippedBits, ::testing::Bool(),
                         [](const auto& test) { return test.param ? "InSharedParameters" : "InCopies"; });

TEST_P(FlippedBits, AreAllFoundBetweenStepsAndAfterForward) {
  const bool share = GetParam();
  DataParallel trainer(make_small_mlp(), options_of(share));
  trainer.step(small_rows(0), mean_loss);
  const std::vector<Place> places = places_of(trainer, share);
  std::mt19937 random(5);
  constexpr int kFlips = 500;
  for (int i = 0; i < kFlips; ++i) {
    const Place& place = places[random() % places.size()];
    const auto element = static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(place.tensor.numel()));
    const int bit = static_cast<int>(random() % 32);
    const float was = place.tensor.flatten()[element].item<float>();
    std::atomic<bool> after_forward = i % 2 == 1;
    if (!after_forward) flip(place.tensor, element, bit);
    const auto damaging = [&](const Mlp& model, const Rows& rows) {
      const at::Tensor loss = mean_loss(model, rows);
      if (after_forward.exchange(false)) flip(place.tensor, element, bit);
      return loss;
    };
    const float is = std::bit_cast<float>(std::bit_cast<std::uint32_t>(was) ^ std::uint32_t{1} << bit);
    expect_error<DriftError>(
        [&] { trainer.step(small_rows(1), damaging); },
        {place.name + " was changed by no step",
         fmt::format("element {} is {} and was {}", element, number(is), number(was)),
         place.replica < 0 ? "in the share of device" : fmt::format("on the replica of device {}", place.replica)});
    flip(place.tensor, element, bit);
    ASSERT_EQ(trainer.steps(), 1);
  }
  EXPECT_NO_THROW(trainer.step(small_rows(1), mean_loss));
}

TEST_P(FlippedBits, ArePutBackAndTheStepIsThatOfAnUndamagedRun) {
  const bool share = GetParam();
  DataParallel undamaged(make_small_mlp(), options_of(share));
  DataParallel trainer(make_small_mlp(), options_of(share, {.on_drift = OnDrift::kHeal}));
  const std::vector<Place> places = places_of(trainer, share);
  std::mt19937 random(6);
  for (int step = 0; step < 30; ++step) {
    const Place& place = places[random() % places.size()];
    flip(place.tensor, static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(place.tensor.numel())),
         static_cast<int>(random() % 32));
    const StepReport report = trainer.step(small_rows(step), mean_loss);
    EXPECT_THAT(report.healed, HasSubstr(place.name));
    const StepReport expected = undamaged.step(small_rows(step), mean_loss);
    EXPECT_EQ(report.digest, expected.digest);
    EXPECT_EQ(report.loss, expected.loss);
  }
}

// Without the mechanism nobody would know.
TEST_P(FlippedBits, AreNotFoundWhenNothingIsAudited) {
  const bool share = GetParam();
  DataParallel trainer(make_small_mlp(), options_of(share, {.every = 0}));
  trainer.step(small_rows(0), mean_loss);
  flip(places_of(trainer, share).front().tensor, 3, 20);
  const StepReport report = trainer.step(small_rows(1), mean_loss);
  EXPECT_FALSE(report.digest.has_value());
}

TEST_P(FlippedBits, AreWarnedAboutAndKeptWhenAsked) {
  const bool share = GetParam();
  DataParallel trainer(make_small_mlp(), options_of(share, {.on_drift = OnDrift::kWarn}));
  trainer.step(small_rows(0), mean_loss);
  for (const Place& place : places_of(trainer, share)) flip(place.tensor, 0, 1);
  EXPECT_NO_THROW(trainer.step(small_rows(1), mean_loss));
  // The damage is what the next steps begin with.
  EXPECT_NO_THROW(trainer.step(small_rows(2), mean_loss));
}

TEST(Audit, FindsTheElementOfALargeSharedTensor) {
  DataParallel trainer(make_mlp(), options_of(true));
  trainer.step(make_rows(12), mean_loss);
  flip(trainer.replica(0).w1, 4400, 27);
  expect_error<DriftError>([&] { trainer.step(make_rows(12), mean_loss); }, {"parameter w1", "element 4400 is "});
}

TEST(Audit, NamesTheBlockOfWhatCannotBeTraced) {
  DataParallel trainer(make_small_mlp(), options_of(true, {.on_drift = OnDrift::kHeal}));
  trainer.step(small_rows(0), mean_loss);
  flip(trainer.replica(0).w1, 3, 20);
  flip(trainer.replica(0).w1, 100, 20);
  EXPECT_ERROR(trainer.step(small_rows(1), mean_loss), DriftError,
               "parameter w1 was changed by no step: it differs somewhere in elements 0 to 179, in more than one bit");
}

TEST(Audit, PutsBackAnythingOfWhichAReplicaHasACopy) {
  DataParallel trainer(make_mlp(), options_of(false, {.on_drift = OnDrift::kHeal}));
  DataParallel undamaged(make_mlp(), options_of(false));
  trainer.step(make_rows(12), mean_loss);
  undamaged.step(make_rows(12), mean_loss);
  at::Tensor damaged = trainer.replica(2).w1.detach();
  std::memset(damaged.data_ptr(), 0x5a, damaged.nbytes());
  const StepReport report = trainer.step(make_rows(12, 1), mean_loss);
  EXPECT_THAT(report.healed, AllOf(HasSubstr("on the replica of device 2"), HasSubstr("1 more blocks")));
  EXPECT_EQ(report.digest, undamaged.step(make_rows(12, 1), mean_loss).digest);
}

TEST(Audit, TakesWhatTheProgramWritesForItsOwn) {
  for (const bool share : {true, false}) {
    DataParallel trainer(make_mlp(), options_of(share));
    trainer.step(make_rows(12), mean_loss);
    {
      const at::NoGradGuard no_grad;
      trainer.replica(0).w1.clamp_(-0.05, 0.05);
    }
    EXPECT_NO_THROW(trainer.step(make_rows(12, 1), mean_loss));
    EXPECT_TRUE(same_bits(trainer.replica(0).w1, trainer.replica(2).w1));
  }
}

TEST(Audit, RefusesWhatTheProgramWritesIntoOneReplicaOnly) {
  DataParallel trainer(make_mlp(), options_of(false));
  {
    const at::NoGradGuard no_grad;
    trainer.replica(1).w1.add_(1);
  }
  expect_error<InvalidArgument>([&] { trainer.step(make_rows(12), mean_loss); }, {"w1 of replica 1", "replica 0"});
}

TEST(Audit, WatchesParametersOfAnOptimizerOfLibtorch) {
  DataParallelOptions options = options_of(true);
  options.torch_optimizer = [](std::vector<at::Tensor> parameters) {
    return std::make_unique<torch::optim::Adam>(std::move(parameters));
  };
  DataParallel trainer(make_small_mlp(), options);
  trainer.step(small_rows(0), mean_loss);
  EXPECT_NO_THROW(trainer.step(small_rows(1), mean_loss));
  flip(trainer.replica(0).b2, 1, 12);
  EXPECT_ERROR(trainer.step(small_rows(2), mean_loss), DriftError, "parameter b2");
}

TEST(Audit, LooksAtEveryFewSteps) {
  DataParallel trainer(make_small_mlp(), options_of(true, {.every = 3}));
  std::vector<bool> has_digest;
  for (int step = 0; step < 7; ++step)
    has_digest.push_back(trainer.step(small_rows(step), mean_loss).digest.has_value());
  // After steps 2 and 5, for which steps 3 and 6 look.
  EXPECT_EQ(has_digest, (std::vector<bool>{false, false, true, false, false, true, false}));
}

TEST(Audit, DigestsTellRunsApart) {
  DataParallel one(make_small_mlp(), options_of(true));
  DataParallel same(make_small_mlp(), options_of(false));
  DataParallel other(make_small_mlp(), options_of(true));
  EXPECT_EQ(one.step(small_rows(0), mean_loss).digest, same.step(small_rows(0), mean_loss).digest);
  EXPECT_NE(other.step(small_rows(1), mean_loss).digest, one.step(small_rows(1), mean_loss).digest);
}

}  // namespace audit_test
}  // namespace brigade::training
