// Rules on whole tensors.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "brigade/base/error.h"
#include "brigade/optim/lamb.h"
#include "brigade/optim/lars.h"
#include "brigade/optim/rule.h"
#include "brigade/optim/sgd.h"
#include "optim/rules.h"
#include "support/errors.h"

namespace brigade::optim::testing {
namespace tensor_test {

torch::Tensor tensor(at::IntArrayRef shape, int seed, at::ScalarType dtype = at::kFloat) {
  const auto values = numbers<double>(static_cast<std::size_t>(c10::multiply_integers(shape)), seed);
  return at::tensor(values, at::kDouble).reshape(shape).to(dtype);
}

template <class T>
std::vector<T> values_of(const torch::Tensor& t) {
  return std::vector<T>(t.data_ptr<T>(), t.data_ptr<T>() + t.numel());
}

template <class T>
void expect_updates_of_slices(const Rule& rule, at::ScalarType dtype) {
  const torch::Tensor p = tensor({90, 100}, 0, dtype);
  std::vector<torch::Tensor> state(rule.state_names().size());
  for (torch::Tensor& buffer : state) buffer = at::full_like(p, std::nan(""));
  Memory<T> expected = fresh_memory<T>(rule, 9000);
  for (int i = 0; i < 3; ++i) {
    const torch::Tensor gradient = tensor({90, 100}, i + 1, dtype);
    rule.update(p, gradient, state, some_step(i));
    EXPECT_TRUE(gradient.equal(tensor({90, 100}, i + 1, dtype))) << rule.describe() << " wrote into the gradient";
    update_in_slices(rule, some_step(i), expected, numbers<T>(9000, i + 1), {4096});
  }
  Memory<T> updated = {.parameters = values_of<T>(p)};
  for (const torch::Tensor& buffer : state) updated.state.push_back(values_of<T>(buffer));
  EXPECT_TRUE(same_bits(updated, expected)) << rule.describe();
}

TEST(RulesOnTensors, GiveTheBitsOfRulesOnSlices) {
  for (const RuleCase& rule_case : rule_cases()) {
    expect_updates_of_slices<float>(rule_case.rule, at::kFloat);
    expect_updates_of_slices<double>(rule_case.rule, at::kDouble);
  }
}

TEST(RulesOnTensors, UpdateDenseTensorsOfAnyStrideInPlace) {
  for (const Rule& rule : {sgd({.momentum = 0.9, .weight_decay = 0.05}), lars()}) {
    const torch::Tensor expected = tensor({4, 6}, 0);
    const torch::Tensor gradient = tensor({4, 6}, 1);
    const std::vector<torch::Tensor> expected_state = {at::zeros({4, 6})};
    rule.update(expected, gradient, expected_state, {.learning_rate = 0.1});
    const auto as_transposed = [](const torch::Tensor& t) { return t.t().contiguous().t(); };
    const auto as_slice = [](const torch::Tensor& t) { return at::cat({t, t}, 1).narrow(1, 0, t.size(1)); };
    for (const torch::Tensor& g :
         {gradient, as_transposed(gradient), as_slice(gradient), at::ones({4, 1}).expand({4, 6})}) {
      const torch::Tensor p = as_transposed(tensor({4, 6}, 0));
      const std::vector<torch::Tensor> state = {as_transposed(at::zeros({4, 6}))};
      const torch::Tensor other = tensor({4, 6}, 0);
      const std::vector<torch::Tensor> other_state = {at::zeros({4, 6})};
      rule.update(p, g, state, {.learning_rate = 0.1});
      rule.update(other, g.contiguous(), other_state, {.learning_rate = 0.1});
      EXPECT_TRUE(at::allclose(p, other, 1e-6, 1e-6)) << rule.describe() << ", strides " << g.strides();
      EXPECT_TRUE(at::allclose(state[0], other_state[0], 1e-6, 1e-6)) << rule.describe() << ", strides " << g.strides();
    }
  }
}

TEST(RulesOnTensors, TakeScalarsAndEmptyTensors) {
  const torch::Tensor scalar = at::ones({});
  sgd().update(scalar, at::ones({}), {}, {.learning_rate = 0.25});
  EXPECT_EQ(scalar.item<float>(), 0.75);
  const torch::Tensor empty = at::ones({0, 3});
  const std::vector<torch::Tensor> state = {at::ones({0, 3}), at::ones({0, 3})};
  lamb().update(empty, at::ones({0, 3}), state, {.learning_rate = 0.25});
}

TEST(RulesOnTensors, TellAutogradThatParametersHaveChanged) {
  const torch::Tensor p = tensor({5}, 0).requires_grad_();
  const torch::Tensor saved = (p * p).sum();
  sgd().update(p, tensor({5}, 1), {}, {.learning_rate = 0.1});
  EXPECT_TRUE(p.is_leaf());
  EXPECT_THROW(saved.backward(), c10::Error) << "a backward through values that have changed must be refused";
}

// A tensor of zeros can only move because its ratio is 1 then.
TEST(RulesOnTensors, MoveParametersThatAreZero) {
  for (const Rule& rule : {lars({.momentum = 0}), lamb()}) {
    const torch::Tensor p = at::zeros({3});
    const std::vector<torch::Tensor> state(rule.state_names().size(), at::zeros({3}));
    const std::vector<torch::Tensor> own = {state.empty() ? torch::Tensor() : at::zeros({3}), at::zeros({3})};
    rule.update(p, at::full({3}, 2.0), std::span(own).first(state.size()), {.learning_rate = 0.1});
    const double expected = rule.name() == "lars" ? -0.2 : -0.1;  // LAMB's first direction is the gradient's sign
    EXPECT_TRUE(at::allclose(p, at::full({3}, expected), 1e-5, 1e-5)) << rule.describe() << p;
  }
}

TEST(RulesOnTensors, RefuseWhatTheyCannotUpdateAndChangeNothing) {
  const Rule rule = sgd({.momentum = 0.9});
  const torch::Tensor t = at::ones({2, 2});
  const std::vector<torch::Tensor> state = {at::ones({2, 2})};
  const auto update = [&](const torch::Tensor& p, const torch::Tensor& g, const std::vector<torch::Tensor>& s) {
    rule.update(p, g, s, {.learning_rate = 0.1});
  };
  EXPECT_ERROR(update(t, at::ones({4}), state), ShapeError,
               "sgd: the parameters are Float [2, 2] on cpu, their gradient is Float [4] on cpu");
  EXPECT_ERROR(update(t, at::ones({2, 2}, at::kDouble), state), ShapeError, "their gradient is Double [2, 2]");
  EXPECT_ERROR(update(t, {}, state), ShapeError, "their gradient is undefined");
  EXPECT_ERROR(update(t, t.to_sparse(), state), InvalidArgument, "the gradient is sparse: make it dense");
  EXPECT_ERROR(update(t, t, {torch::Tensor()}), ShapeError, "their momentum_buffer is undefined");
  EXPECT_ERROR(update(t, t, {at::ones({2, 2}, at::kDouble)}), ShapeError, "their momentum_buffer is Double");
  EXPECT_ERROR(update(t, t, {}), ShapeError, "the state of this rule is 1 tensors, and 0 were given");
  EXPECT_ERROR(update(t, t, {t.t()}), ShapeError, "strides [2, 1], their momentum_buffer has [1, 2]");
  const torch::Tensor wide = at::ones({2, 4});
  EXPECT_ERROR(update(wide.narrow(1, 0, 2), t, state), ShapeError, "strides [4, 1], which leave gaps or overlap");
  EXPECT_ERROR(update(at::ones({2, 1}).expand({2, 2}), t, state), ShapeError, "leave gaps or overlap");
  EXPECT_ERROR(update({}, t, state), InvalidArgument, "the parameters are undefined");
  EXPECT_ERROR(update(at::ones({2, 2}, at::kBFloat16), t, state), InvalidArgument, "BFloat16 [2, 2] on cpu");
  EXPECT_ERROR(update(at::ones({2, 2}, at::kInt), t, state), InvalidArgument, "an optimizer of torch::optim");
  EXPECT_ERROR(update(t.to_sparse(), t, state), InvalidArgument, "not dense");
  EXPECT_ERROR(rule.update(t, t.clone(), state, {.learning_rate = -1}), InvalidArgument, "the learning rate is -1");
  EXPECT_TRUE(t.equal(at::ones({2, 2})));
  EXPECT_TRUE(wide.equal(at::ones({2, 4})));
  EXPECT_TRUE(state[0].equal(at::ones({2, 2})));
}

}  // namespace tensor_test
}  // namespace brigade::optim::testing
