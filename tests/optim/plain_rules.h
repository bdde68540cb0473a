// The update rules written out: one element after the other, one rounding for each operator.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "brigade/optim/adam.h"
#include "brigade/optim/block_sums.h"
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
    T g = prepared(step, gradient[i]);
    if (options.weight_decay != 0) g += static_cast<T>(options.weight_decay) * p;
    if (options.momentum != 0) {
      T& v = memory.state[0][i];
      v = step.index == 0 ? g : momentum * v + static_cast<T>(1 - options.dampening) * g;
      g = options.nesterov ? g + momentum * v : v;
    }
    p -= static_cast<T>(step.learning_rate) * g;
  }
}

// A product of t factors. Corrections rest on it and reach parameters rounded, so the bits of float32 and, but for the
// last few, of float64 are those of any good power.
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
    T g = prepared(step, gradient[i]);
    if (decoupled) {
      p = p * static_cast<T>(1 - step.learning_rate * options.weight_decay);
    } else if (options.weight_decay != 0) {
      g = g + static_cast<T>(options.weight_decay) * p;
    }
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

}  // namespace brigade::optim::testing::plain
