// What tests of the kernels share: all dtypes, what each takes, and every instruction set of this processor.
#pragma once

#include <hwy/highway.h>

#include "brigade/comm/reduce.h"
#include "comm/support.h"

namespace brigade::comm::testing {

using AllTypes = ::testing::Types<Bool, std::uint8_t, std::int8_t, std::int16_t, std::int32_t, std::int64_t, Float16,
                                  BFloat16, float, double, std::complex<float>, std::complex<double>>;

template <class T>
constexpr bool kDivides = IsNarrow<T> || std::is_floating_point_v<T> || kIsComplex<T>;

// One of each kind.
template <class T>
std::vector<Reduction> reductions_of() {
  std::vector<Reduction> reductions;
  if (!std::is_same_v<T, Bool>) reductions.push_back({.op = ReduceOp::kSum});
  if (!kIsComplex<T>) reductions.push_back({.op = ReduceOp::kMin});
  if (!kIsComplex<T>) reductions.push_back({.op = ReduceOp::kMax});
  const std::size_t undivided = reductions.size();
  for (std::size_t i = 0; kDivides<T> && i < undivided; ++i) reductions.push_back({reductions[i].op, 7.0});
  return reductions;
}

inline std::string text_of(Reduction reduction) {
  return fmt::format("{} / {}", name_of(reduction.op), reduction.divisor);
}

// Calls reduce() with every span `shift` bytes past an aligned address.
template <class T>
std::vector<T> reduce_vectors(Reduction reduction, const std::vector<std::vector<T>>& inputs, std::size_t shift = 0) {
  const std::size_t bytes = inputs[0].size() * sizeof(T);
  std::vector<std::vector<std::byte>> memory(inputs.size() + 1, std::vector<std::byte>(bytes + shift));
  std::vector<std::span<const std::byte>> spans;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (bytes > 0) std::memcpy(memory[i].data() + shift, inputs[i].data(), bytes);
    spans.push_back(std::span(memory[i]).subspan(shift));
  }
  const std::span<std::byte> out = std::span(memory.back()).subspan(shift);
  comm::reduce(reduction, dtype_of<T>(), spans, out);
  std::vector<T> result(inputs[0].size());
  if (bytes > 0) std::memcpy(result.data(), out.data(), bytes);
  return result;
}

// Puts special numbers at the beginning of each of several inputs, as far as they are long enough. NaNs first.
template <class T>
void plant_specials(std::vector<std::vector<T>>& inputs) {
  if constexpr (kIsComplex<T>) {
    for (auto& input : inputs) {
      std::vector<std::vector<typename T::value_type>> parts = {{}, {}};
      for (const T z : input) parts[0].push_back(z.real()), parts[1].push_back(z.imag());
      plant_specials(parts);
      for (std::size_t k = 0; k < input.size(); ++k) input[k] = {parts[0][k], parts[1][k]};
    }
  } else if constexpr (IsNarrow<T> || std::is_floating_point_v<T>) {
    constexpr std::size_t kKinds = 6;
    using Bits = decltype(bits_of(T()));
    constexpr auto kSign = static_cast<Bits>(Bits{1} << (8 * sizeof(T) - 1));
    Bits infinity = 0;
    if constexpr (IsNarrow<T>) {
      infinity = T::kInfinity;
    } else {
      infinity = std::bit_cast<Bits>(std::numeric_limits<T>::infinity());
    }
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const Bits sign = i % 2 == 0 ? kSign : 0;
      const Bits kinds[kKinds] = {static_cast<Bits>(infinity + 1 + i),  // a NaN, where it is of the other inputs' too
                                  infinity,
                                  0,
                                  static_cast<Bits>(i),
                                  static_cast<Bits>(i + 1),
                                  static_cast<Bits>(infinity - 1)};
      for (std::size_t k = 0; k < std::min(kKinds, inputs[i].size()); ++k) {
        inputs[i][k] = std::bit_cast<T>(static_cast<Bits>(kinds[k] | sign));
      }
      // Among numbers: in one input only.
      const std::size_t at = kKinds + i;
      if (at < inputs[i].size()) inputs[i][at] = std::bit_cast<T>(static_cast<Bits>(kinds[0] | sign));
    }
  }
}

// Calls `body(name)` with each instruction set that this processor has and the kernels were compiled for.
template <class Body>
void on_every_target(Body body) {
  const auto choose = [](std::int64_t targets) {
    hwy::SetSupportedTargetsForTest(targets);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  };
  const std::vector<std::int64_t> targets = hwy::SupportedAndGeneratedTargets();
  ASSERT_GT(targets.size(), 1u) << "only one instruction set: nothing is compared";
  for (const std::int64_t target : targets) {
    choose(target);
    body(hwy::TargetName(target));
  }
  choose(0);
}

}  // namespace brigade::comm::testing
