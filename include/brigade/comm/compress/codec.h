// Codecs: float32 numbers as fewer bytes, and back.
//
//   const comm::Codec codec = compress::int8();
//   std::vector<std::byte> message(codec.encoded_bytes(gradient.size()));
//   codec.encode(gradient, {.key = key}, message);
//   codec.decode(message, received);  // unbiased: gradient within one level of its block
//
// A Codec is a value and holds options only. What one carries from an encode to the next (the residual of error feedback, the
// factor that PowerSGD starts from) belongs to the caller: encode() reads `state` and writes `next_state`. So it can be
// checkpointed, and a step that failed is forgotten by keeping the state from before it.
//
//   const comm::Codec codec = compress::error_feedback(compress::topk({.ratio = 0.01}));
//   std::vector<float> state(codec.state_size(shape)), next = state;   // zeros
//   codec.encode(gradient, shape, {.key = key, .state = state, .next_state = next}, message);
//   std::swap(state, next);                                            // the step counts
//
// The same numbers, options, key and state give the same bytes, and the same bytes the same numbers, on every instruction set.
// Numbers lie in a message as they lie in memory; messages may begin at any address. A message is as long as options and shape
// say, so nothing in it is trusted to say how much there is: decode() throws DataError for one of another length, and for one that
// contradicts itself (a scale below zero, an index out of order), and never touches memory outside the spans it was given.
//
// Numbers that are not finite: none, fp16 and bf16 keep each NaN and infinity where it is; topk takes a NaN for larger than an
// infinity, which is larger than all else; int8 and onebit make the whole block NaN that holds one; powersgd the whole tensor. So
// what was not finite is not finite after it either, and whoever looks at the sum sees it. State that comes of such numbers is not
// worth keeping.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "brigade/base/threefry.h"

namespace brigade::comm {

class CodecImplementation;

// How many numbers there are, and, for codecs that see them as a matrix, in rows of how many. A count alone is one row.
struct Matrix {
  std::size_t rows = 1;
  std::size_t columns = 0;

  constexpr Matrix(std::size_t count) noexcept : columns(count) {}
  constexpr Matrix(std::size_t row_count, std::size_t row_length) noexcept : rows(row_count), columns(row_length) {}
  constexpr std::size_t size() const noexcept { return rows * columns; }
};

// What an encoding depends on besides the numbers.
struct Encoding {
  ThreefryKey key = {};  // of its random numbers: another one for every tensor, step and participant

  // state_size() numbers each, zeros before the first encode. They do not overlap.
  std::span<const float> state = {};
  std::span<float> next_state = {};
  // What a residual is multiplied by before it is added, when the numbers are in another unit than those it was left by.
  float residual_scale = 1;
};

class Codec {
 public:
  Codec() = default;  // none yet; nothing but a test of it and assignment may be asked of it
  explicit Codec(std::shared_ptr<const CodecImplementation> implementation);
  explicit operator bool() const noexcept { return implementation_ != nullptr; }

  std::string_view name() const;  // "topk"

  // "topk, ratio 0.01, error feedback": the name, the options that are not their defaults, and what is around it.
  std::string describe() const;

  std::size_t encoded_bytes(Matrix shape) const;
  std::size_t state_size(Matrix shape) const;

  // Whether what is lost in one step has to be made up for in the next ones for training to come to the same end:
  // error_feedback() is meant for these.
  bool wants_error_feedback() const;

  // The part of a state that holds what earlier encodings lost: state.first(size) with error feedback, else nothing.
  std::size_t residual_size(Matrix shape) const;

  // Throws ShapeError for spans that do not fit `shape`.
  void encode(std::span<const float> in, Matrix shape, const Encoding& how, std::span<std::byte> out) const;
  void encode(std::span<const float> in, const Encoding& how, std::span<std::byte> out) const {
    encode(in, in.size(), how, out);
  }

  // Throws DataError for a message that is not one; `out` holds anything then. ShapeError when `out` does not fit `shape`.
  void decode(std::span<const std::byte> in, Matrix shape, std::span<float> out) const;
  void decode(std::span<const std::byte> in, std::span<float> out) const { decode(in, out.size(), out); }

 private:
  const CodecImplementation& implementation() const;

  std::shared_ptr<const CodecImplementation> implementation_;
};

}  // namespace brigade::comm
