#include "optim/rules.h"

#include <hwy/highway.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

#include "brigade/optim/adagrad.h"
#include "brigade/optim/adam.h"
#include "brigade/optim/block_sums.h"
#include "brigade/optim/lamb.h"
#include "brigade/optim/lars.h"
#include "brigade/optim/rmsprop.h"
#include "brigade/optim/sgd.h"
#include "optim/plain_rules.h"

namespace brigade::optim::testing {
namespace {

// `plain` takes (step, memory, gradient) of either dtype.
template <class Plain>
RuleCase rule_case(Rule rule, Plain plain) {
  return {.rule = std::move(rule), .plain_float = plain, .plain_double = plain};
}

std::vector<RuleCase> make_rule_cases() {
  std::vector<RuleCase> cases;
  for (const SgdOptions& options : std::vector<SgdOptions>{
           {},
           {.weight_decay = 0.05},
           {.momentum = 0.9},
           {.momentum = 0.9, .dampening = 0.3, .weight_decay = 0.05},
           {.momentum = 0.8, .nesterov = true},
           {.momentum = 0.9, .weight_decay = 1e-4, .nesterov = true},
       }) {
    cases.push_back(rule_case(sgd(options), [options](const Step& step, auto& memory, const auto& gradient) {
      plain::sgd(options, step, memory, gradient);
    }));
  }
  for (const AdamOptions& options : std::vector<AdamOptions>{
           {},
           {.beta1 = 0.8, .beta2 = 0.95, .eps = 1e-6, .weight_decay = 0.1},
           {.beta1 = 0.7, .beta2 = 0.99, .amsgrad = true},
       }) {
    cases.push_back(rule_case(adam(options), [options](const Step& step, auto& memory, const auto& gradient) {
      plain::adam(options, false, step, memory, gradient);
    }));
  }
  for (const AdamWOptions& options : std::vector<AdamWOptions>{
           {},
           {.beta1 = 0.8, .beta2 = 0.95, .eps = 1e-6, .weight_decay = 0.1, .amsgrad = true},
       }) {
    const AdamOptions same = {.beta1 = options.beta1,
                              .beta2 = options.beta2,
                              .eps = options.eps,
                              .weight_decay = options.weight_decay,
                              .amsgrad = options.amsgrad};
    cases.push_back(rule_case(adamw(options), [same](const Step& step, auto& memory, const auto& gradient) {
      plain::adam(same, true, step, memory, gradient);
    }));
  }
  for (const AdagradOptions& options : std::vector<AdagradOptions>{
           {},
           {.lr_decay = 0.01, .weight_decay = 0.05, .initial_accumulator_value = 0.1, .eps = 1e-8},
       }) {
    cases.push_back(rule_case(adagrad(options), [options](const Step& step, auto& memory, const auto& gradient) {
      plain::adagrad(options, step, memory, gradient);
    }));
  }
  for (const RmspropOptions& options : std::vector<RmspropOptions>{
           {},
           {.alpha = 0.9, .eps = 1e-6, .weight_decay = 0.05, .momentum = 0.8, .centered = true},
           {.momentum = 0.5},
           {.alpha = 0.8, .centered = true},
       }) {
    cases.push_back(rule_case(rmsprop(options), [options](const Step& step, auto& memory, const auto& gradient) {
      plain::rmsprop(options, step, memory, gradient);
    }));
  }
  for (const LarsOptions& options : std::vector<LarsOptions>{
           {},
           {.momentum = 0},
           {.momentum = 0.8, .weight_decay = 0.1, .trust_coefficient = 0.02, .eps = 1e-3, .nesterov = true},
       }) {
    cases.push_back(rule_case(lars(options), [options](const Step& step, auto& memory, const auto& gradient) {
      plain::lars(options, step, memory, gradient);
    }));
  }
  for (const LambOptions& options : std::vector<LambOptions>{
           {},
           {.beta1 = 0.8, .beta2 = 0.99, .eps = 1e-5, .weight_decay = 0.1},
       }) {
    cases.push_back(rule_case(lamb(options), [options](const Step& step, auto& memory, const auto& gradient) {
      plain::lamb(options, step, memory, gradient);
    }));
  }
  return cases;
}

template <class T>
void update_slices(const Rule& rule, const Step& step, Memory<T>& memory, std::vector<T>& gradient,
                   std::vector<std::size_t> cuts) {
  const std::size_t count = gradient.size();
  cuts.insert(cuts.begin(), 0);
  cuts.push_back(count);
  std::vector<double> sums_of_parameters(block_count(count));
  std::vector<double> sums_of_direction(block_count(count));
  // body(slice, and its part of the sums) for each slice
  const auto for_each_slice = [&](const auto& body) {
    for (std::size_t i = cuts.size() - 1; i-- > 0;) {
      const std::size_t begin = cuts[i];
      const std::size_t size = cuts[i + 1] - begin;
      std::vector<std::span<T>> state;
      for (std::vector<T>& buffer : memory.state) state.push_back(std::span(buffer).subspan(begin, size));
      const auto sums_in = [&](std::vector<double>& sums) {
        return std::span(sums).subspan(begin / kBlockElements, block_count(size));
      };
      body(Slice<T>{.parameters = std::span(memory.parameters).subspan(begin, size),
                    .gradient = std::span(gradient).subspan(begin, size),
                    .state = state},
           DirectionSums{.parameters = sums_in(sums_of_parameters), .direction = sums_in(sums_of_direction)});
    }
  };
  if (!rule.layerwise()) {
    for_each_slice([&](const Slice<T>& slice, const DirectionSums&) { rule.update(slice, step); });
    return;
  }
  for_each_slice([&](const Slice<T>& slice, const DirectionSums& sums) { rule.direct(slice, step, sums); });
  const double ratio =
      rule.ratio(std::sqrt(optim::tree_sum(sums_of_parameters)), std::sqrt(optim::tree_sum(sums_of_direction)));
  for_each_slice([&](const Slice<T>& slice, const DirectionSums&) { rule.apply(slice, step, ratio); });
}

template <class T>
bool have_same_bits(const Memory<T>& a, const Memory<T>& b) {
  const auto same = [](const std::vector<T>& x, const std::vector<T>& y) {
    return x.size() == y.size() && (x.empty() || std::memcmp(x.data(), y.data(), x.size() * sizeof(T)) == 0);
  };
  return same(a.parameters, b.parameters) &&
         std::equal(a.state.begin(), a.state.end(), b.state.begin(), b.state.end(), same);
}

}  // namespace

const std::vector<RuleCase>& rule_cases() {
  static const std::vector<RuleCase> cases = make_rule_cases();
  return cases;
}

Step some_step(std::int64_t index) {
  switch (index % 3) {
    case 0:
      return {.learning_rate = 0.1, .index = index};
    case 1:
      return {.learning_rate = 0.03, .index = index, .divisor = 48, .clip_factor = 0.7};
    default:
      return {.learning_rate = 0.01, .index = index, .divisor = 0.7, .clip_value = 0.3};
  }
}

void update_in_slices(const Rule& rule, const Step& step, Memory<float>& memory, std::vector<float> gradient,
                      const std::vector<std::size_t>& cuts) {
  update_slices(rule, step, memory, gradient, cuts);
}

void update_in_slices(const Rule& rule, const Step& step, Memory<double>& memory, std::vector<double> gradient,
                      const std::vector<std::size_t>& cuts) {
  update_slices(rule, step, memory, gradient, cuts);
}

bool same_bits(const Memory<float>& a, const Memory<float>& b) { return have_same_bits(a, b); }
bool same_bits(const Memory<double>& a, const Memory<double>& b) { return have_same_bits(a, b); }

void on_every_target(const std::function<void(const char*)>& body) {
  const auto choose = [](std::int64_t targets) {
    hwy::SetSupportedTargetsForTest(targets);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  };
  const std::vector<std::int64_t> targets = hwy::SupportedAndGeneratedTargets();
  ASSERT_GT(targets.size(), 0u);
  for (const std::int64_t target : targets) {
    choose(target);
    body(hwy::TargetName(target));
  }
  choose(0);
}

}  // namespace brigade::optim::testing
