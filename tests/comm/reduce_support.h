// What tests of the kernels share: expected reductions of every dtype.
#pragma once

#include "brigade/comm/reduce.h"
#include "comm/support.h"
#include "comm/targets.h"

namespace brigade::comm::testing {

using Memory = std::vector<std::byte>;

// The plain loop of support.h for a dtype that is known at run time.
struct Oracle {
  DType dtype;
  std::vector<Reduction> reductions;  // one of each kind that the dtype takes
  std::vector<Memory> (*inputs)(int participants, std::size_t count);
  // With what processors treat differently in front: NaNs of either sign and with payloads, infinities that cancel, zeros of
  // either sign, subnormal numbers.
  std::vector<Memory> (*special_inputs)(int participants, std::size_t count);
  Memory (*reduced)(Reduction reduction, const std::vector<Memory>& inputs);
};

// Of every dtype, to be the parameters of tests, which dtype_in_name() tells apart.
const std::vector<Oracle>& oracles();
std::string dtype_in_name(const ::testing::TestParamInfo<Oracle>& parameter);

std::string text_of(Reduction reduction);

// reduce() with every span `shift` bytes past an aligned address.
Memory reduce_memory(Reduction reduction, DType dtype, const std::vector<Memory>& inputs, std::size_t shift = 0);

template <class T>
Memory memory_of(const std::vector<T>& values) {
  Memory memory(values.size() * sizeof(T));
  if (!memory.empty()) std::memcpy(memory.data(), values.data(), memory.size());
  return memory;
}

template <class T>
std::vector<T> values_in(const Memory& memory) {
  std::vector<T> values(memory.size() / sizeof(T));
  if (!memory.empty()) std::memcpy(values.data(), memory.data(), memory.size());
  return values;
}

template <class T>
std::vector<T> reduce_vectors(Reduction reduction, const std::vector<std::vector<T>>& inputs) {
  std::vector<Memory> memories;
  for (const std::vector<T>& input : inputs) memories.push_back(memory_of(input));
  return values_in<T>(reduce_memory(reduction, dtype_of<T>(), memories));
}

}  // namespace brigade::comm::testing
