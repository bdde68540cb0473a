// An update rule: how parameters follow from their gradient, and from what the rule remembers of earlier ones.
//
//   const optim::Rule rule = optim::adamw({.weight_decay = 0.01});
//   rule.update(weight, gradient, state, {.learning_rate = 1e-3, .index = step});  // state: two tensors like weight
//
// A Rule is a value and holds options only. State belongs to the caller, so that it can be checkpointed and slices of one
// tensor can be updated on different devices. Every operation is rounded by itself, but for gradient + weight_decay * p,
// which float32 rounds once; so the bits depend neither on the processor's vector width nor on where a tensor is cut.
//
// Element-wise rules (sgd, adam, adamw, adagrad, rmsprop) take slices cut anywhere, in one pass over memory. Layer-wise
// rules (lars, lamb) scale the update of a tensor by a ratio of norms over all of it and take two passes around them:
//
//   for each slice:  rule.direct(slice, step, sums);     // slices cut at borders of blocks, see block_sums.h
//   for the tensor:  ratio = rule.ratio(sqrt(tree_sum(all sums of parameters)), sqrt(tree_sum(all sums of directions)));
//   for each slice:  rule.apply(slice, step, ratio);
//
// Functions on slices allocate nothing and may run on several threads at once, on slices that do not overlap. All throw
// InvalidArgument for a step that cannot be (a rate that is negative or not finite) and for the wrong kind of rule,
// ShapeError for spans or tensors that do not fit; nothing has changed then.
#pragma once

#include <torch/types.h>

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "brigade/optim/step.h"

namespace brigade::optim {

class RuleImplementation;

// Sums of squares by block, see block_sums.h; as many as the slice has blocks.
struct DirectionSums {
  std::span<double> parameters = {};  // before the update
  std::span<double> direction = {};
};

class Rule {
 public:
  explicit Rule(std::shared_ptr<const RuleImplementation> implementation);

  std::string_view name() const;  // "sgd"

  // "sgd, momentum 0.9, weight decay 0.0001": the name and the options that are not their defaults.
  std::string describe() const;

  // The buffers that a rule keeps, each as large as the parameters, by torch.optim's names: {"momentum_buffer"},
  // {"exp_avg", "exp_avg_sq"}; at most kMaxStateBuffers.
  std::span<const std::string_view> state_names() const;

  // What every element of buffer `state` is taken for at step 0.
  double initial_value(std::size_t state) const;

  // Whether updates take the passes of layer-wise rules.
  bool layerwise() const;

  // Element-wise rules: parameters and state, in place.
  void update(const Slice<float>& slice, const Step& step) const;
  void update(const Slice<double>& slice, const Step& step) const;

  // Layer-wise rules, first pass: leaves the direction, not yet scaled, in `gradient`. Parameters stay. With `sums`, the
  // sums for ratio() are taken while the numbers are in the cache.
  void direct(const Slice<float>& slice, const Step& step) const;
  void direct(const Slice<double>& slice, const Step& step) const;
  void direct(const Slice<float>& slice, const Step& step, DirectionSums sums) const;
  void direct(const Slice<double>& slice, const Step& step, DirectionSums sums) const;

  // By what the direction is multiplied besides the learning rate, from the norms over the whole tensor.
  double ratio(double parameter_norm, double direction_norm) const;

  // Layer-wise rules, second pass: parameters, in place. `ratio` 1 is an update without trust ratio.
  void apply(const Slice<float>& slice, const Step& step, double ratio) const;
  void apply(const Slice<double>& slice, const Step& step, double ratio) const;

  // Any rule on whole tensors on the CPU, float32 or float64, for programs at the level of pmap. Parameters and state are
  // dense in memory, of one shape and with the same strides; a gradient with other strides is copied first. What
  // autograd saved of the parameters is known to have changed. A gradient is only read; layer-wise rules copy it.
  void update(const torch::Tensor& parameters, const torch::Tensor& gradient, std::span<const torch::Tensor> state,
              const Step& step) const;

  // The same rule with another weight decay, for a group of parameters.
  Rule with_weight_decay(double weight_decay) const;

 private:
  std::shared_ptr<const RuleImplementation> implementation_;
};

inline constexpr std::size_t kMaxStateBuffers = 3;

}  // namespace brigade::optim
