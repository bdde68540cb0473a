#include "brigade/optim/rule.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "brigade/base/error.h"
#include "brigade/optim/block_sums.h"
#include "optim/implementation.h"
#include "optim/options.h"

namespace brigade::optim {
namespace {

void check_step(const RuleImplementation& rule, const Step& step) {
  check_non_negative(rule.name(), "the learning rate", step.learning_rate);
  if (step.index < 0) {
    throw InvalidArgument(fmt::format("{}: the step's index is {}: updates count from 0.", rule.name(), step.index));
  }
  if (!std::isfinite(step.divisor) || step.divisor <= 0) {
    throw InvalidArgument(
        fmt::format("{}: the gradient's divisor is {}: give a finite number above 0. A batch without "
                    "weight has no gradient; skip its step.",
                    rule.name(), step.divisor));
  }
  if (!std::isfinite(step.clip_factor) || step.clip_factor < 0) {
    throw InvalidArgument(
        fmt::format("{}: the gradient's clip_factor is {}, so its norm was not finite. Skip the step, "
                    "or stop.",
                    rule.name(), step.clip_factor));
  }
  if (!(step.clip_value > 0)) {
    throw InvalidArgument(fmt::format("{}: clip_value is {}: give a number above 0, or infinity to clip nothing.",
                                      rule.name(), step.clip_value));
  }
}

template <class T>
void check_slice(const RuleImplementation& rule, const Slice<T>& slice) {
  const std::size_t count = slice.parameters.size();
  const auto names = rule.state_names();
  if (slice.state.size() != names.size()) {
    throw ShapeError(
        fmt::format("{}: the state of this rule is {} buffers, and {} were given; state_names() lists them.",
                    rule.describe(), names.size(), slice.state.size()));
  }
  const auto fits = [count](std::span<T> span) { return span.size() == count; };
  if (fits(slice.gradient) && std::all_of(slice.state.begin(), slice.state.end(), fits)) return;
  std::string text = fmt::format("{}: {} parameters, {} gradients", rule.name(), count, slice.gradient.size());
  for (std::size_t i = 0; i < names.size(); ++i) text += fmt::format(", {} of {}", slice.state[i].size(), names[i]);
  throw ShapeError(text + ". Give spans of one length.");
}

template <class T>
void check_sums(const RuleImplementation& rule, const Slice<T>& slice, const DirectionSums& sums) {
  const std::size_t blocks = block_count(slice.parameters.size());
  if (sums.parameters.size() == blocks && sums.direction.size() == blocks) return;
  throw ShapeError(
      fmt::format("{}: {} parameters have {} blocks, and there is room for {} sums of parameters and {} of "
                  "the direction.",
                  rule.name(), slice.parameters.size(), blocks, sums.parameters.size(), sums.direction.size()));
}

// Block after block, so that a block's sums find it in the cache.
template <class T>
void direct_and_sum(const RuleImplementation& rule, const Slice<T>& slice, const Step& step,
                    const DirectionSums& sums) {
  std::array<std::span<T>, kMaxStateBuffers> state;
  for (std::size_t b = 0; b < sums.direction.size(); ++b) {
    const std::size_t begin = b * kBlockElements;
    const std::size_t count = std::min(kBlockElements, slice.parameters.size() - begin);
    for (std::size_t i = 0; i < slice.state.size(); ++i) state[i] = slice.state[i].subspan(begin, count);
    const Slice<T> block = {.parameters = slice.parameters.subspan(begin, count),
                            .gradient = slice.gradient.subspan(begin, count),
                            .state = std::span(state).first(slice.state.size())};
    sums_of_squares(std::span<const T>(block.parameters), sums.parameters.subspan(b, 1));
    rule.direct(block, step);
    sums_of_squares(std::span<const T>(block.gradient), sums.direction.subspan(b, 1));
  }
}

template <class T>
void checked_update(const RuleImplementation& rule, const Slice<T>& slice, const Step& step) {
  check_step(rule, step);
  check_slice(rule, slice);
  rule.update(slice, step);
}

template <class T>
void checked_direct(const RuleImplementation& rule, const Slice<T>& slice, const Step& step) {
  check_step(rule, step);
  check_slice(rule, slice);
  rule.direct(slice, step);
}

template <class T>
void checked_direct(const RuleImplementation& rule, const Slice<T>& slice, const Step& step,
                    const DirectionSums& sums) {
  check_step(rule, step);
  check_slice(rule, slice);
  check_sums(rule, slice, sums);
  direct_and_sum(rule, slice, step, sums);
}

template <class T>
void checked_apply(const RuleImplementation& rule, const Slice<T>& slice, const Step& step, double ratio) {
  check_step(rule, step);
  check_slice(rule, slice);
  if (!std::isfinite(ratio) || ratio < 0) {
    throw InvalidArgument(
        fmt::format("{}: the trust ratio is {}: a norm of parameters or direction was not finite. Skip "
                    "the step, or stop.",
                    rule.name(), ratio));
  }
  rule.apply(slice, step, ratio);
}

}  // namespace

Rule::Rule(std::shared_ptr<const RuleImplementation> implementation) : implementation_(std::move(implementation)) {}

std::string_view Rule::name() const { return implementation_->name(); }
std::string Rule::describe() const { return implementation_->describe(); }
std::span<const std::string_view> Rule::state_names() const { return implementation_->state_names(); }
bool Rule::layerwise() const { return implementation_->layerwise(); }

double Rule::initial_value(std::size_t state) const {
  if (state < state_names().size()) return implementation_->initial_value(state);
  throw InvalidArgument(fmt::format("{}: there is no buffer {} of state; state_names() lists {}.", describe(), state,
                                    state_names().size()));
}

Rule Rule::with_weight_decay(double weight_decay) const {
  return Rule(implementation_->with_weight_decay(weight_decay));
}

void Rule::update(const Slice<float>& slice, const Step& step) const { checked_update(*implementation_, slice, step); }
void Rule::update(const Slice<double>& slice, const Step& step) const { checked_update(*implementation_, slice, step); }

void Rule::direct(const Slice<float>& slice, const Step& step) const { checked_direct(*implementation_, slice, step); }
void Rule::direct(const Slice<double>& slice, const Step& step) const { checked_direct(*implementation_, slice, step); }

void Rule::direct(const Slice<float>& slice, const Step& step, DirectionSums sums) const {
  checked_direct(*implementation_, slice, step, sums);
}
void Rule::direct(const Slice<double>& slice, const Step& step, DirectionSums sums) const {
  checked_direct(*implementation_, slice, step, sums);
}

double Rule::ratio(double parameter_norm, double direction_norm) const {
  return implementation_->ratio(parameter_norm, direction_norm);
}

void Rule::apply(const Slice<float>& slice, const Step& step, double ratio) const {
  checked_apply(*implementation_, slice, step, ratio);
}
void Rule::apply(const Slice<double>& slice, const Step& step, double ratio) const {
  checked_apply(*implementation_, slice, step, ratio);
}

}  // namespace brigade::optim
