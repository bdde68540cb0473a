// What tests of codecs share: numbers, messages, and the codecs there are.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "brigade/base/error.h"
#include "brigade/comm/compress/codecs.h"
#include "comm/targets.h"
#include "support/errors.h"

namespace brigade::comm::testing {

using Message = std::vector<std::byte>;
using Numbers = std::vector<float>;

inline constexpr ThreefryKey kKey = {0x13198a2e, 0x03707344};
inline constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
inline constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Like gradients: normal, of a size that changes along the tensor.
inline Numbers numbers(std::size_t count, unsigned seed = 1) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal;
  Numbers all(count);
  for (std::size_t i = 0; i < count; ++i) {
    all[i] = normal(generator) * std::exp2(static_cast<float>(static_cast<int>(i / 100 % 7) - 3));
  }
  return all;
}

inline std::vector<std::uint32_t> bits_of(std::span<const float> values) {
  std::vector<std::uint32_t> bits;
  for (const float value : values) bits.push_back(std::bit_cast<std::uint32_t>(value));
  return bits;
}

// The message, of a codec whose state is zeros.
inline Message encoded(const Codec& codec, const Numbers& in, Matrix shape, ThreefryKey key = kKey) {
  Message message(codec.encoded_bytes(shape));
  const Numbers state(codec.state_size(shape));
  Numbers next = state;
  codec.encode(in, shape, {.key = key, .state = state, .next_state = next}, message);
  return message;
}

inline Numbers decoded(const Codec& codec, const Message& message, Matrix shape) {
  Numbers out(shape.size(), -1.25F);
  codec.decode(message, shape, out);
  return out;
}

inline Numbers passed(const Codec& codec, const Numbers& in, ThreefryKey key = kKey) {
  return decoded(codec, encoded(codec, in, in.size(), key), in.size());
}
inline Numbers passed(const Codec& codec, const Numbers& in, Matrix shape, ThreefryKey key = kKey) {
  return decoded(codec, encoded(codec, in, shape, key), shape);
}

// Puts `value` where the message has number `index` of an array of T that begins `offset` bytes on.
template <class T>
void put(Message& message, std::size_t offset, std::size_t index, T value) {
  std::memcpy(message.data() + offset + index * sizeof(T), &value, sizeof value);
}
template <class T>
T get(const Message& message, std::size_t offset, std::size_t index) {
  T value;
  std::memcpy(&value, message.data() + offset + index * sizeof(T), sizeof value);
  return value;
}

struct NamedCodec {
  std::string name;
  Codec codec;
};

inline std::vector<NamedCodec> all_codecs() {
  return {{"none", compress::none()},
          {"fp16", compress::fp16()},
          {"bf16", compress::bf16()},
          {"int8", compress::int8()},
          {"int8_of_64", compress::int8({.block = 64})},
          {"onebit", compress::onebit()},
          {"onebit_of_64", compress::onebit({.block = 64})},
          {"topk", compress::topk()},
          {"topk_all", compress::topk({.ratio = 1})},
          {"powersgd", compress::powersgd()},
          {"powersgd_1", compress::powersgd({.rank = 1})},
          {"topk_feedback", compress::error_feedback(compress::topk({.ratio = 0.1}))},
          {"powersgd_feedback", compress::error_feedback(compress::powersgd({.rank = 2}))}};
}

}  // namespace brigade::comm::testing
