// The documented order of every sum over devices, as a plain recursion.
#pragma once

#include <cstddef>
#include <vector>

namespace brigade {

// T(i, j) = T(i, i + p) + T(i + p, j), with p the largest power of two below j - i. Of numbers, or of tensors.
template <class T>
T tree_sum(const std::vector<T>& values, std::size_t i, std::size_t j) {
  if (j - i == 1) return values[i];
  std::size_t p = 1;
  while (2 * p < j - i) p *= 2;
  return tree_sum(values, i, i + p) + tree_sum(values, i + p, j);
}

template <class T>
T tree_sum(const std::vector<T>& values) {
  return tree_sum(values, 0, values.size());
}

}  // namespace brigade
