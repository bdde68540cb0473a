// What a Rule says of itself, what it refuses, and that it leaves memory alone.
#include "brigade/optim/rule.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <new>
#include <string>
#include <vector>

#include "brigade/base/error.h"
#include "brigade/optim/adagrad.h"
#include "brigade/optim/adam.h"
#include "brigade/optim/block_sums.h"
#include "brigade/optim/lamb.h"
#include "brigade/optim/lars.h"
#include "brigade/optim/rmsprop.h"
#include "brigade/optim/sgd.h"
#include "optim/power.h"
#include "optim/rules.h"
#include "support/errors.h"

static thread_local std::size_t allocations = 0;

// Counts what this program allocates in C++.
void* operator new(std::size_t size) {
  ++allocations;
  if (void* memory = std::malloc(size)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace brigade::optim::testing {
namespace rule_test {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

std::vector<std::string> names_of(const Rule& rule) { return {rule.state_names().begin(), rule.state_names().end()}; }

TEST(Rules, DescribeWhatIsNotTheDefault) {
  EXPECT_EQ(sgd().describe(), "sgd");
  EXPECT_EQ(sgd({.momentum = 0.9, .weight_decay = 1e-4}).describe(), "sgd, momentum 0.9, weight decay 0.0001");
  EXPECT_EQ(sgd({.momentum = 0.9, .nesterov = true}).describe(), "sgd, momentum 0.9, nesterov");
  EXPECT_EQ(adam({.beta2 = 0.95, .amsgrad = true}).describe(), "adam, beta2 0.95, amsgrad");
  EXPECT_EQ(adamw().describe(), "adamw");
  EXPECT_EQ(adamw({.weight_decay = 0}).describe(), "adamw, weight decay 0");
  EXPECT_EQ(adagrad({.lr_decay = 0.5, .initial_accumulator_value = 0.1}).describe(),
            "adagrad, lr_decay 0.5, initial accumulator value 0.1");
  EXPECT_EQ(rmsprop({.momentum = 0.5, .centered = true}).describe(), "rmsprop, momentum 0.5, centered");
  EXPECT_EQ(lars({.trust_coefficient = 0.02}).describe(), "lars, trust coefficient 0.02");
  EXPECT_EQ(lamb({.eps = 1e-5}).describe(), "lamb, eps 1e-05");
  EXPECT_EQ(lamb().name(), "lamb");
}

TEST(Rules, NameTheirState) {
  using Names = std::vector<std::string>;
  EXPECT_EQ(names_of(sgd()), Names());
  EXPECT_EQ(names_of(sgd({.momentum = 0.9})), Names{"momentum_buffer"});
  EXPECT_EQ(names_of(adam()), (Names{"exp_avg", "exp_avg_sq"}));
  EXPECT_EQ(names_of(adamw({.amsgrad = true})), (Names{"exp_avg", "exp_avg_sq", "max_exp_avg_sq"}));
  EXPECT_EQ(names_of(adagrad()), Names{"sum"});
  EXPECT_EQ(names_of(rmsprop()), Names{"square_avg"});
  EXPECT_EQ(names_of(rmsprop({.centered = true})), (Names{"square_avg", "grad_avg"}));
  EXPECT_EQ(names_of(rmsprop({.momentum = 0.5, .centered = true})),
            (Names{"square_avg", "momentum_buffer", "grad_avg"}));
  EXPECT_EQ(names_of(lars()), Names{"momentum_buffer"});
  EXPECT_EQ(names_of(lars({.momentum = 0})), Names());
  EXPECT_EQ(names_of(lamb()), (Names{"exp_avg", "exp_avg_sq"}));
  for (const RuleCase& rule_case : rule_cases()) EXPECT_LE(rule_case.rule.state_names().size(), kMaxStateBuffers);
}

TEST(Rules, TellWhatStateIsBeforeTheFirstStep) {
  EXPECT_EQ(adam().initial_value(1), 0);
  EXPECT_EQ(adagrad({.initial_accumulator_value = 0.1}).initial_value(0), 0.1);
  EXPECT_ERROR(adam().initial_value(2), InvalidArgument, "adam: there is no buffer 2 of state; state_names() lists 2");
}

TEST(Rules, TakeAnotherWeightDecayAndStayTheSameOtherwise) {
  EXPECT_EQ(sgd({.momentum = 0.9}).with_weight_decay(0.1).describe(), "sgd, momentum 0.9, weight decay 0.1");
  EXPECT_EQ(adam({.amsgrad = true}).with_weight_decay(0.1).describe(), "adam, weight decay 0.1, amsgrad");
  EXPECT_EQ(adamw({.beta1 = 0.8}).with_weight_decay(0).describe(), "adamw, beta1 0.8, weight decay 0");
  EXPECT_EQ(adagrad({.eps = 1e-8}).with_weight_decay(0.1).describe(), "adagrad, eps 1e-08, weight decay 0.1");
  EXPECT_EQ(rmsprop({.centered = true}).with_weight_decay(0.1).describe(), "rmsprop, centered, weight decay 0.1");
  EXPECT_EQ(lars({.nesterov = true}).with_weight_decay(0.1).describe(), "lars, nesterov, weight decay 0.1");
  EXPECT_EQ(lamb({.beta2 = 0.9}).with_weight_decay(0.1).describe(), "lamb, beta2 0.9, weight decay 0.1");
  EXPECT_ERROR(sgd().with_weight_decay(-1), InvalidArgument, "sgd: weight_decay is -1");
  const Rule original = sgd({.momentum = 0.9});
  (void)original.with_weight_decay(0.1);
  EXPECT_EQ(original.describe(), "sgd, momentum 0.9");
}

TEST(Rules, RefuseOptionsThatAreOutOfRange) {
  EXPECT_ERROR(sgd({.momentum = -0.1}), InvalidArgument, "sgd: momentum is -0.1");
  EXPECT_ERROR(sgd({.momentum = kNan}), InvalidArgument, "sgd: momentum is nan");
  EXPECT_ERROR(sgd({.momentum = 0.9, .dampening = -1}), InvalidArgument, "dampening is -1");
  EXPECT_ERROR(sgd({.weight_decay = -1}), InvalidArgument, "weight_decay is -1");
  EXPECT_ERROR(sgd({.nesterov = true}), InvalidArgument, "needs a momentum above 0");
  EXPECT_ERROR(sgd({.momentum = 0.9, .dampening = 0.1, .nesterov = true}), InvalidArgument, "they are 0.9 and 0.1");
  EXPECT_ERROR(adam({.beta1 = 1}), InvalidArgument, "adam: beta1 is 1: give a number from 0 to below 1");
  EXPECT_ERROR(adam({.beta2 = kNan}), InvalidArgument, "adam: beta2 is nan");
  EXPECT_ERROR(adam({.eps = -1}), InvalidArgument, "adam: eps is -1");
  EXPECT_ERROR(adam({.weight_decay = kInf}), InvalidArgument, "adam: weight_decay is inf");
  EXPECT_ERROR(adamw({.beta2 = -0.1}), InvalidArgument, "adamw: beta2 is -0.1");
  EXPECT_ERROR(adagrad({.lr_decay = -1}), InvalidArgument, "adagrad: lr_decay is -1");
  EXPECT_ERROR(adagrad({.weight_decay = -1}), InvalidArgument, "adagrad: weight_decay is -1");
  EXPECT_ERROR(adagrad({.initial_accumulator_value = -1}), InvalidArgument, "initial_accumulator_value is -1");
  EXPECT_ERROR(adagrad({.eps = kNan}), InvalidArgument, "adagrad: eps is nan");
  EXPECT_ERROR(rmsprop({.alpha = 1}), InvalidArgument, "rmsprop: alpha is 1");
  EXPECT_ERROR(rmsprop({.eps = -1}), InvalidArgument, "rmsprop: eps is -1");
  EXPECT_ERROR(rmsprop({.weight_decay = -1}), InvalidArgument, "rmsprop: weight_decay is -1");
  EXPECT_ERROR(rmsprop({.momentum = -1}), InvalidArgument, "rmsprop: momentum is -1");
  EXPECT_ERROR(lars({.momentum = -1}), InvalidArgument, "lars: momentum is -1");
  EXPECT_ERROR(lars({.weight_decay = -1}), InvalidArgument, "lars: weight_decay is -1");
  EXPECT_ERROR(lars({.trust_coefficient = -1}), InvalidArgument, "lars: trust_coefficient is -1");
  EXPECT_ERROR(lars({.eps = -1}), InvalidArgument, "lars: eps is -1");
  EXPECT_ERROR(lars({.momentum = 0, .nesterov = true}), InvalidArgument, "needs a momentum above 0");
  EXPECT_ERROR(lamb({.beta1 = 2}), InvalidArgument, "lamb: beta1 is 2");
  EXPECT_ERROR(lamb({.beta2 = 1}), InvalidArgument, "lamb: beta2 is 1");
  EXPECT_ERROR(lamb({.eps = -1}), InvalidArgument, "lamb: eps is -1");
  EXPECT_ERROR(lamb({.weight_decay = -1}), InvalidArgument, "lamb: weight_decay is -1");
}

// One slice of `count` elements with state for `rule`, all ones.
struct Ones {
  Ones(const Rule& rule, std::size_t count)
      : parameters(count, 1), gradient(count, 1), buffers(rule.state_names().size(), std::vector<float>(count, 1)) {
    state.assign(buffers.begin(), buffers.end());
  }
  Slice<float> slice() { return {.parameters = parameters, .gradient = gradient, .state = state}; }
  void expect_untouched() const {
    for (const auto* values : {&parameters, &gradient}) EXPECT_EQ(*values, std::vector<float>(values->size(), 1));
    for (const auto& values : buffers) EXPECT_EQ(values, std::vector<float>(values.size(), 1));
  }

  std::vector<float> parameters;
  std::vector<float> gradient;
  std::vector<std::vector<float>> buffers;
  std::vector<std::span<float>> state;
};

TEST(Rules, RefuseStepsThatCannotBeAndChangeNothing) {
  for (const Rule& rule : {sgd({.momentum = 0.9}), lars()}) {
    Ones ones(rule, 4);
    const auto take = [&](const Step& step) {
      return rule.layerwise() ? rule.direct(ones.slice(), step) : rule.update(ones.slice(), step);
    };
    EXPECT_ERROR(take({.learning_rate = -1}), InvalidArgument, "the learning rate is -1");
    EXPECT_ERROR(take({.learning_rate = kInf}), InvalidArgument, "the learning rate is inf");
    EXPECT_ERROR(take({.index = -1}), InvalidArgument, "the step's index is -1");
    EXPECT_ERROR(take({.divisor = 0}), InvalidArgument, "divisor is 0");
    EXPECT_ERROR(take({.divisor = kNan}), InvalidArgument, "divisor is nan");
    EXPECT_ERROR(take({.clip_factor = kNan}), InvalidArgument, "clip_factor is nan, so its norm was not finite");
    EXPECT_ERROR(take({.clip_factor = -1}), InvalidArgument, "clip_factor is -1");
    EXPECT_ERROR(take({.clip_value = 0}), InvalidArgument, "clip_value is 0");
    EXPECT_ERROR(take({.clip_value = kNan}), InvalidArgument, "clip_value is nan");
    if (rule.layerwise()) {
      EXPECT_ERROR(rule.apply(ones.slice(), {.learning_rate = -1}, 1), InvalidArgument, "the learning rate is -1");
      EXPECT_ERROR(rule.apply(ones.slice(), {}, kNan), InvalidArgument, "lars: the trust ratio is nan");
      EXPECT_ERROR(rule.apply(ones.slice(), {}, -1), InvalidArgument, "lars: the trust ratio is -1");
    }
    ones.expect_untouched();
  }
}

TEST(Rules, RefuseSpansThatDoNotFitAndChangeNothing) {
  const Rule rule = adam();
  Ones ones(rule, 4);
  std::vector<float> three(3, 1);
  Slice<float> slice = ones.slice();
  slice.gradient = three;
  EXPECT_ERROR(rule.update(slice, {}), ShapeError,
               "adam: 4 parameters, 3 gradients, 4 of exp_avg, 4 of exp_avg_sq. Give spans of one length");
  slice = ones.slice();
  ones.state[1] = three;
  EXPECT_ERROR(rule.update(slice, {}), ShapeError, "3 of exp_avg_sq");
  slice.state = std::span(ones.state).first(1);
  EXPECT_ERROR(rule.update(slice, {}), ShapeError, "adam: the state of this rule is 2 buffers, and 1 were given");
  ones.expect_untouched();

  const Rule layerwise = lamb();
  Ones others(layerwise, 5000);
  std::vector<double> sums(2);
  EXPECT_ERROR(layerwise.direct(others.slice(), {}, {.parameters = sums, .direction = std::span(sums).first(1)}),
               ShapeError, "lamb: 5000 parameters have 2 blocks, and there is room for 2 sums of parameters and 1 of");
  slice = others.slice();
  slice.gradient = three;
  EXPECT_ERROR(layerwise.direct(slice, {}), ShapeError, "lamb: 5000 parameters, 3 gradients");
  EXPECT_ERROR(layerwise.direct(slice, {}, {.parameters = sums, .direction = sums}), ShapeError, "3 gradients");
  EXPECT_ERROR(layerwise.apply(slice, {}, 1), ShapeError, "lamb: 5000 parameters, 3 gradients");
  others.expect_untouched();
}

TEST(Rules, RefuseThePassesOfTheOtherKind) {
  const Rule elementwise = sgd();
  Ones ones(elementwise, 4);
  EXPECT_ERROR(elementwise.direct(ones.slice(), {}), InvalidArgument, "sgd: there is no direct");
  EXPECT_ERROR(elementwise.apply(ones.slice(), {}, 1), InvalidArgument, "sgd: there is no apply");
  EXPECT_ERROR(elementwise.ratio(1, 1), InvalidArgument, "call update");
  const Rule layerwise = lars({.momentum = 0});
  EXPECT_ERROR(layerwise.update(ones.slice(), {}), InvalidArgument, "call direct, ratio and apply");
  ones.expect_untouched();
}

TEST(Rules, UpdateSlicesWithoutAllocating) {
  for (const RuleCase& rule_case : rule_cases()) {
    Ones ones(rule_case.rule, 9001);
    std::vector<double> sums(block_count(9001));
    const Step step = {.learning_rate = 0.1, .divisor = 0.7, .clip_value = 0.5};
    const std::size_t before = allocations;
    if (rule_case.rule.layerwise()) {
      rule_case.rule.direct(ones.slice(), step, {.parameters = sums, .direction = sums});
      rule_case.rule.apply(ones.slice(), step, rule_case.rule.ratio(1, 1));
    } else {
      rule_case.rule.update(ones.slice(), step);
    }
    EXPECT_EQ(allocations, before) << rule_case.rule.describe();
  }
}

TEST(Rules, LeaveWhatLiesBeyondTheSlice) {
  for (const RuleCase& rule_case : rule_cases()) {
    const Rule& rule = rule_case.rule;
    for (std::size_t count = 0; count < 40; ++count) {
      Ones ones(rule, count + 8);
      for (std::span<float>& buffer : ones.state) buffer = buffer.first(count);
      const Slice<float> slice = {.parameters = std::span(ones.parameters).first(count),
                                  .gradient = std::span(ones.gradient).first(count),
                                  .state = ones.state};
      if (rule.layerwise()) {
        rule.direct(slice, {.learning_rate = 0.1});
        rule.apply(slice, {.learning_rate = 0.1}, 1);
      } else {
        rule.update(slice, {.learning_rate = 0.1});
      }
      std::vector<std::vector<float>> all = ones.buffers;
      all.push_back(ones.parameters);
      if (rule.layerwise()) {
        all.push_back(ones.gradient);
      } else {
        EXPECT_EQ(ones.gradient, std::vector<float>(count + 8, 1)) << rule.describe();
      }
      for (const std::vector<float>& values : all) {
        EXPECT_EQ(std::vector(values.begin() + static_cast<std::ptrdiff_t>(count), values.end()),
                  std::vector<float>(8, 1))
            << rule.describe() << ", " << count << " elements";
      }
    }
  }
}

TEST(Rules, PassNonFiniteGradientsOnToTheirElementOnly) {
  for (const RuleCase& rule_case : rule_cases()) {
    const Rule& rule = rule_case.rule;
    if (rule.layerwise()) continue;
    Memory<float> memory = fresh_memory<float>(rule, 40);
    std::vector<float> gradient = numbers<float>(40, 1);
    gradient[17] = std::numeric_limits<float>::quiet_NaN();
    update_in_slices(rule, {.learning_rate = 0.1, .clip_value = 0.5}, memory, gradient);
    for (std::size_t i = 0; i < 40; ++i) EXPECT_EQ(std::isnan(memory.parameters[i]), i == 17) << rule.describe();
  }
}

// Sums just beside the middle of two float32, which float64 takes for the middle.
TEST(WeightDecay, IsAddedWithOneRounding) {
  const double decay = 0x1p-24 * (1 + 0x1p-20);
  const float parameter = 1 - 0x1p-20F;  // its product with the decay is 2^-24 - 2^-64
  const std::vector<float> parameters = {parameter, parameter, -parameter, -parameter, parameter, parameter};
  const float odd = 1 + 0x1p-23F;
  const std::vector<float> gradient = {odd, 1, -odd, -1, 0, std::numeric_limits<float>::infinity()};
  const std::vector<float> expected = {odd, 1, -odd, -1, 0x1p-24F, std::numeric_limits<float>::infinity()};
  ASSERT_NE(static_cast<float>(odd + decay * parameter), odd) << "not a case that needs one rounding";
  const Rule rule = lars({.momentum = 0, .weight_decay = decay});
  on_every_target([&](const char* target) {
    std::vector<float> p = parameters;
    std::vector<float> direction = gradient;
    rule.direct(Slice<float>{.parameters = p, .gradient = direction}, {});
    EXPECT_EQ(direction, expected) << target;
  });
}

TEST(TrustRatio, IsTheRatioOfTheNormsAndOneWhereEitherIsZero) {
  const Rule rule = lars({.trust_coefficient = 0.02, .eps = 0.5});
  EXPECT_DOUBLE_EQ(rule.ratio(3, 5.5), 0.02 * 3 / 6);
  EXPECT_EQ(rule.ratio(0, 5), 1);
  EXPECT_EQ(rule.ratio(5, 0), 1);
  EXPECT_DOUBLE_EQ(lamb().ratio(3, 4), 0.75);
  EXPECT_EQ(lamb().ratio(0, 4), 1);
  EXPECT_EQ(lamb().ratio(4, 0), 1);
  EXPECT_TRUE(std::isnan(lamb().ratio(kNan, 4)));
}

// Long runs of one gradient: s - a * a is what rounding leaves of 0.
TEST(Rmsprop, CountsANegativeVarianceAsZero) {
  const Rule rule = rmsprop({.alpha = 0.9, .eps = 1e-3, .centered = true});
  Memory<float> memory = fresh_memory<float>(rule, 64);
  std::vector<float> gradient = numbers<float>(64, 1);
  bool was_negative = false;
  for (int i = 0; i < 300; ++i) {
    update_in_slices(rule, {.learning_rate = 1e-4, .index = i}, memory, gradient);
    for (std::size_t k = 0; k < 64; ++k) {
      const float average = memory.state[1][k];
      was_negative = was_negative || memory.state[0][k] - average * average < 0;
      ASSERT_TRUE(std::isfinite(memory.parameters[k])) << "step " << i;
    }
  }
  EXPECT_TRUE(was_negative);
}

TEST(Powers, AreThoseOfTheMathematicalLibrary) {
  for (const double base : {0.0, 0.5, 0.9, 0.999, 0.99999}) {
    for (const std::int64_t exponent : {0, 1, 2, 3, 7, 100, 1000, 123'456, 100'000'000}) {
      EXPECT_NEAR(power(base, exponent), std::pow(base, exponent), 1e-13 / (1 - base)) << base << "^" << exponent;
    }
  }
}

}  // namespace rule_test
}  // namespace brigade::optim::testing
