#include "comm/reduce_support.h"

namespace brigade::comm::testing {
namespace {

template <class T>
std::vector<Reduction> reductions_of() {
  std::vector<Reduction> reductions;
  if (!std::is_same_v<T, Bool>) reductions.push_back({.op = ReduceOp::kSum});
  if (!kIsComplex<T>) reductions.push_back({.op = ReduceOp::kMin});
  if (!kIsComplex<T>) reductions.push_back({.op = ReduceOp::kMax});
  const bool divides = IsNarrow<T> || std::is_floating_point_v<T> || kIsComplex<T>;
  const std::size_t undivided = reductions.size();
  for (std::size_t i = 0; divides && i < undivided; ++i) reductions.push_back({reductions[i].op, 7.0});
  return reductions;
}

// The numbers of participant `rank` that begin its input.
template <class T>
std::vector<T> specials_of(std::size_t rank) {
  if constexpr (kIsComplex<T>) {
    std::vector<T> specials;
    for (const auto part : specials_of<typename T::value_type>(rank)) {
      specials.emplace_back(part, 1);
      specials.emplace_back(1, part);
    }
    return specials;
  } else if constexpr (IsNarrow<T> || std::is_floating_point_v<T>) {
    using Bits = decltype(bits_of(T()));
    Bits infinity = 0;
    if constexpr (IsNarrow<T>) {
      infinity = T::kInfinity;
    } else {
      infinity = std::bit_cast<Bits>(std::numeric_limits<T>::infinity());
    }
    const auto sign = static_cast<Bits>(rank % 2 == 0 ? Bits{1} << (8 * sizeof(T) - 1) : 0);
    // A NaN in all inputs, then in one only.
    std::vector<Bits> bits = {static_cast<Bits>(infinity + 1 + rank),
                              infinity,
                              static_cast<Bits>(infinity - 1),
                              0,
                              static_cast<Bits>(rank),
                              static_cast<Bits>(rank + 1)};
    for (std::size_t i = 0; i < 9; ++i) bits.push_back(i == rank ? static_cast<Bits>(infinity + 1 + rank) : Bits{1});
    std::vector<T> specials;
    for (const Bits word : bits) specials.push_back(std::bit_cast<T>(static_cast<Bits>(word | sign)));
    return specials;
  } else {
    return {};
  }
}

template <class T>
std::vector<Memory> inputs_of(int participants, std::size_t count) {
  std::vector<Memory> inputs;
  for (int rank = 0; rank < participants; ++rank) inputs.push_back(memory_of(values_of<T>(rank, count)));
  return inputs;
}

template <class T>
std::vector<Memory> special_inputs_of(int participants, std::size_t count) {
  std::vector<Memory> inputs;
  for (int rank = 0; rank < participants; ++rank) {
    std::vector<T> values = specials_of<T>(static_cast<std::size_t>(rank));
    for (const T value : values_of<T>(rank, count)) values.push_back(value);
    values.resize(count);
    inputs.push_back(memory_of(values));
  }
  return inputs;
}

template <class T>
Memory reduced_memory(Reduction reduction, const std::vector<Memory>& inputs) {
  std::vector<std::vector<T>> values;
  for (const Memory& input : inputs) values.push_back(values_in<T>(input));
  return memory_of(reduced(reduction, values));
}

template <class... T>
std::vector<Oracle> oracles_of() {
  return {{dtype_of<T>(), reductions_of<T>(), inputs_of<T>, special_inputs_of<T>, reduced_memory<T>}...};
}

}  // namespace

const std::vector<Oracle>& oracles() {
  static const std::vector<Oracle> kOracles =
      oracles_of<Bool, std::uint8_t, std::int8_t, std::int16_t, std::int32_t, std::int64_t, Float16, BFloat16, float,
                 double, std::complex<float>, std::complex<double>>();
  return kOracles;
}

std::string dtype_in_name(const ::testing::TestParamInfo<Oracle>& parameter) {
  return std::string(name_of(parameter.param.dtype));
}

std::string text_of(Reduction reduction) { return fmt::format("{} / {}", name_of(reduction.op), reduction.divisor); }

Memory reduce_memory(Reduction reduction, DType dtype, const std::vector<Memory>& inputs, std::size_t shift) {
  std::vector<Memory> shifted(inputs.size() + 1, Memory(shift + inputs[0].size()));
  std::vector<std::span<const std::byte>> spans;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    std::copy(inputs[i].begin(), inputs[i].end(), shifted[i].begin() + static_cast<std::ptrdiff_t>(shift));
    spans.push_back(std::span(shifted[i]).subspan(shift));
  }
  const std::span<std::byte> out = std::span(shifted.back()).subspan(shift);
  comm::reduce(reduction, dtype, spans, out);
  return Memory(out.begin(), out.end());
}

}  // namespace brigade::comm::testing
