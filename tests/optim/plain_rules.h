// The update rules written out: one element after the other, one rounding for each operator.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "brigade/optim/adagrad.h"
#include "brigade/optim/adam.h"
#include "brigade/optim/lamb.h"
#include "brigade/optim/lars.h"
#include "brigade/optim/rmsprop.h"
#include "brigade/optim/sgd.h"
#include "optim/rules.h"
#include "support/tree_sum.h"

namespace brigade::optim::testing::plain {

#if defined(__SIZEOF_FLOAT128__)
__extension__ using Wide = __float128;
#else
using Wide = long double;
#endif

// gradient / divisor, rounded once: 113 bits hold enough of a quotient of a float32 by a float64 to tell on which side of
// the middle of two float32 it lies.
inline float quotient(float x, double y) { return static_cast<float>(static_cast<Wide>(x) / static_cast<Wide>(y)); }
inline double quotient(double x, double y) { return x / y; }

// gradient + weight_decay * parameter, rounded once in float32.
inline float with_decay(float gradient, double weight_decay, float parameter) {
  return weight_decay == 0 ? gradient : std::fma(static_cast<float>(weight_decay), parameter, gradient);
}
inline double with_decay(double gradient, double weight_decay, double parameter) {
  return weight_decay == 0 ? gradient : gradient + weight_decay * parameter;
}

template <class T>
T prepared(const Step& step, T gradient) {
  const T scaled = quotient(gradient, step.divisor) * static_cast<T>(step.clip_factor);
  const auto limit = static_cast<T>(step.clip_value);
  return scaled > limit ? limit : scaled < -limit ? -limit : scaled;
}

// The sum of squares of a tensor.
template <class T>
double sum_of_squares(const std::vector<T>& values) {
  std::vector<double> blocks;
  for (std::size_t begin = 0; begin < values.size(); begin += 4096) {
    std::vector<double> lanes(16);
    for (std::size_t i = begin; i < std::min(begin + 4096, values.size()); ++i) {
      lanes[(i - begin) % 16] += static_cast<double>(values[i]) * static_cast<double>(values[i]);
    }
    blocks.push_back(brigade::tree_sum(lanes));
  }
  return blocks.empty() ? 0 : brigade::tree_sum(blocks);
}

template <class T>
void sgd(const SgdOptions& options, const Step& step, Memory<T>& memory, const std::vector<T>& gradient) {
  const auto momentum = static_cast<T>(options.momentum);
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    T& p = memory.parameters[i];
    T g = with_decay(prepared(step, gradient[i]), options.weight_decay, p);
    if (options.momentum != 0) {
      T& v = memory.state[0][i];
      v = step.index == 0 ? g : momentum * v + static_cast<T>(1 - options.dampening) * g;
      g = options.nesterov ? g + momentum * v : v;
    }
    p -= static_cast<T>(step.learning_rate) * g;
  }
}

// By repeated squaring, as multiplying t times rounds elsewhere; options_test.cpp compares such powers with std::pow.
inline double power(double base, std::int64_t t) {
  double result = 1;
  for (; t > 0; t /= 2) {
    if (t % 2 == 1) result = result * base;
    base = base * base;
  }
  return result;
}

template <class T>
void adam(const AdamOptions& options, bool decoupled, const Step& step, Memory<T>& memory,
          const std::vector<T>& gradient) {
  const double correction1 = 1 - power(options.beta1, step.index + 1);
  const double correction2 = 1 - power(options.beta2, step.index + 1);
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    T& p = memory.parameters[i];
    T& m = memory.state[0][i];
    T& v = memory.state[1][i];
    const T g = with_decay(prepared(step, gradient[i]), decoupled ? 0 : options.weight_decay, p);
    if (decoupled) p = p * static_cast<T>(1 - step.learning_rate * options.weight_decay);
    const T m_before = step.index == 0 ? T{0} : m;
    const T v_before = step.index == 0 ? T{0} : v;
    m = static_cast<T>(options.beta1) * m_before + static_cast<T>(1 - options.beta1) * g;
    v = static_cast<T>(options.beta2) * v_before + static_cast<T>(1 - options.beta2) * g * g;
    T u = v;
    if (options.amsgrad) {
      T& highest = memory.state[2][i];
      if (step.index == 0 || highest < v) highest = v;
      u = highest;
    }
    const T root = std::sqrt(u) * static_cast<T>(1 / std::sqrt(correction2)) + static_cast<T>(options.eps);
    p = p - static_cast<T>(step.learning_rate / correction1) * m / root;
  }
}

template <class T>
void adagrad(const AdagradOptions& options, const Step& step, Memory<T>& memory, const std::vector<T>& gradient) {
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    T& p = memory.parameters[i];
    T& sum = memory.state[0][i];
    const T g = with_decay(prepared(step, gradient[i]), options.weight_decay, p);
    if (step.index == 0) sum = static_cast<T>(options.initial_accumulator_value);
    sum = sum + g * g;
    const double decayed = step.learning_rate / (1 + static_cast<double>(step.index) * options.lr_decay);
    p = p - static_cast<T>(decayed) * g / (std::sqrt(sum) + static_cast<T>(options.eps));
  }
}

template <class T>
void rmsprop(const RmspropOptions& options, const Step& step, Memory<T>& memory, const std::vector<T>& gradient) {
  if (step.index == 0) {
    for (std::vector<T>& buffer : memory.state) std::fill(buffer.begin(), buffer.end(), T{0});
  }
  const auto alpha = static_cast<T>(options.alpha);
  const auto share = static_cast<T>(1 - options.alpha);
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    T& p = memory.parameters[i];
    const T g = with_decay(prepared(step, gradient[i]), options.weight_decay, p);
    T& square = memory.state[0][i];
    square = alpha * square + share * g * g;
    T variance = square;
    if (options.centered) {
      T& average = memory.state[options.momentum != 0 ? 2 : 1][i];
      average = alpha * average + share * g;
      variance = std::max(T{0}, square - average * average);
    }
    T update = g / (std::sqrt(variance) + static_cast<T>(options.eps));
    if (options.momentum != 0) {
      T& buffer = memory.state[1][i];
      buffer = static_cast<T>(options.momentum) * buffer + update;
      update = buffer;
    }
    p = p - static_cast<T>(step.learning_rate) * update;
  }
}

template <class T>
void lars(const LarsOptions& options, const Step& step, Memory<T>& memory, const std::vector<T>& gradient) {
  std::vector<T> direction = gradient;
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    direction[i] = with_decay(prepared(step, gradient[i]), options.weight_decay, memory.parameters[i]);
  }
  const double parameter_norm = std::sqrt(sum_of_squares(memory.parameters));
  const double direction_norm = std::sqrt(sum_of_squares(direction));
  double ratio = options.trust_coefficient * parameter_norm / (direction_norm + options.eps);
  if (parameter_norm == 0 || direction_norm == 0) ratio = 1;
  const auto momentum = static_cast<T>(options.momentum);
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    T update = static_cast<T>(step.learning_rate * ratio) * direction[i];
    if (options.momentum != 0) {
      T& buffer = memory.state[0][i];
      buffer = step.index == 0 ? update : momentum * buffer + update;
      update = options.nesterov ? update + momentum * buffer : buffer;
    }
    memory.parameters[i] -= update;
  }
}

template <class T>
void lamb(const LambOptions& options, const Step& step, Memory<T>& memory, const std::vector<T>& gradient) {
  const double correction1 = 1 - power(options.beta1, step.index + 1);
  const double correction2 = 1 - power(options.beta2, step.index + 1);
  std::vector<T> direction = gradient;
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    T& m = memory.state[0][i];
    T& v = memory.state[1][i];
    const T g = prepared(step, gradient[i]);
    if (step.index == 0) m = v = 0;
    m = static_cast<T>(options.beta1) * m + static_cast<T>(1 - options.beta1) * g;
    v = static_cast<T>(options.beta2) * v + static_cast<T>(1 - options.beta2) * g * g;
    const T root = std::sqrt(v) * static_cast<T>(1 / std::sqrt(correction2)) + static_cast<T>(options.eps);
    const T update = m * static_cast<T>(1 / correction1) / root;
    direction[i] = with_decay(update, options.weight_decay, memory.parameters[i]);
  }
  const double parameter_norm = std::sqrt(sum_of_squares(memory.parameters));
  const double direction_norm = std::sqrt(sum_of_squares(direction));
  const double ratio = parameter_norm == 0 || direction_norm == 0 ? 1 : parameter_norm / direction_norm;
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    memory.parameters[i] -= static_cast<T>(step.learning_rate * ratio) * direction[i];
  }
}

}  // namespace brigade::optim::testing::plain
