// What tests of update rules share: every rule with its branches, beside the same rule as a plain loop.
#pragma once

#include <cmath>
#include <cstddef>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "brigade/optim/rule.h"

namespace brigade::optim::testing {

// Parameters of one tensor and a rule's buffers, each as long.
template <class T>
struct Memory {
  std::vector<T> parameters = {};
  std::vector<std::vector<T>> state = {};
};

template <class T>
using PlainRule = std::function<void(const Step& step, Memory<T>& memory, const std::vector<T>& gradient)>;

struct RuleCase {
  Rule rule;
  PlainRule<float> plain_float;
  PlainRule<double> plain_double;

  const PlainRule<float>& plain(float) const { return plain_float; }
  const PlainRule<double>& plain(double) const { return plain_double; }
};

// All rules, with options that take every branch.
const std::vector<RuleCase>& rule_cases();

// Numbers in [-2, 2] that repeat late.
template <class T>
std::vector<T> numbers(std::size_t count, int seed) {
  std::vector<T> values(count);
  for (std::size_t i = 0; i < count; ++i) {
    values[i] = static_cast<T>(2 * std::sin(0.7 * static_cast<double>(i) + 1.3 * seed));
  }
  return values;
}

// Parameters to begin with. State holds what no rule may read at step 0.
template <class T>
Memory<T> fresh_memory(const Rule& rule, std::size_t count) {
  const std::vector<T> unread(count, std::numeric_limits<T>::quiet_NaN());
  return {.parameters = numbers<T>(count, 0), .state = std::vector(rule.state_names().size(), unread)};
}

// Step number `index`: one that takes the gradient as it is, one that divides and scales it, one that divides it by
// what float32 does not hold and clips it, and so on.
Step some_step(std::int64_t index);

// One update of a tensor that is cut at `cuts`, in ascending order. Slices are updated last to first. Layer-wise rules
// need their cuts at borders of blocks.
void update_in_slices(const Rule& rule, const Step& step, Memory<float>& memory, std::vector<float> gradient,
                      const std::vector<std::size_t>& cuts = {});
void update_in_slices(const Rule& rule, const Step& step, Memory<double>& memory, std::vector<double> gradient,
                      const std::vector<std::size_t>& cuts = {});

// `steps` steps of a tensor of `count` elements.
template <class T>
Memory<T> updated(const Rule& rule, std::size_t count, int steps, const std::vector<std::size_t>& cuts = {}) {
  Memory<T> memory = fresh_memory<T>(rule, count);
  for (int i = 0; i < steps; ++i) update_in_slices(rule, some_step(i), memory, numbers<T>(count, i + 1), cuts);
  return memory;
}

template <class T>
Memory<T> updated_in_a_loop(const RuleCase& rule_case, std::size_t count, int steps) {
  Memory<T> memory = fresh_memory<T>(rule_case.rule, count);
  for (int i = 0; i < steps; ++i) rule_case.plain(T())(some_step(i), memory, numbers<T>(count, i + 1));
  return memory;
}

bool same_bits(const Memory<float>& a, const Memory<float>& b);
bool same_bits(const Memory<double>& a, const Memory<double>& b);

// Calls `body(name)` with each instruction set that this processor has and the kernels were compiled for.
void on_every_target(const std::function<void(const char*)>& body);

}  // namespace brigade::optim::testing
