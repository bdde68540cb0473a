#include "brigade/comm/compress/codec.h"

#include <fmt/format.h>

#include "brigade/base/error.h"
#include "comm/compress/implementation.h"
#include "comm/compress/message.h"

namespace brigade::comm {
namespace {

void check(std::string_view codec, std::string_view what, std::size_t size, std::size_t expected, Matrix shape) {
  if (size == expected) return;
  throw ShapeError(fmt::format("{}: {} has a size of {}, where {} x {} numbers take {}", codec, what, size, shape.rows,
                               shape.columns, expected));
}

}  // namespace

void throw_damaged(std::string_view codec, std::string_view what) {
  throw DataError(fmt::format("the {} message is damaged: {}", codec, what));
}

void check_block(std::string_view codec, std::size_t block) {
  if (block > 0 && block % kGroup == 0) return;
  throw InvalidArgument(fmt::format("{}: a block of {}: give a multiple of {}", codec, block, kGroup));
}

Codec::Codec(std::shared_ptr<const CodecImplementation> implementation) : implementation_(std::move(implementation)) {}

const CodecImplementation& Codec::implementation() const {
  if (implementation_) return *implementation_;
  throw InvalidArgument("this Codec is none yet: assign one of namespace compress, such as compress::bf16(), first");
}

std::string_view Codec::name() const { return implementation().name(); }
std::string Codec::describe() const { return implementation().describe(); }
std::size_t Codec::encoded_bytes(Matrix shape) const { return implementation().encoded_bytes(shape); }
std::size_t Codec::state_size(Matrix shape) const { return implementation().state_size(shape); }
bool Codec::wants_error_feedback() const { return implementation().wants_error_feedback(); }
std::size_t Codec::residual_size(Matrix shape) const { return implementation().residual_size(shape); }

void Codec::encode(std::span<const float> in, Matrix shape, const Encoding& how, std::span<std::byte> out) const {
  const CodecImplementation& codec = implementation();
  check(name(), "what is encoded", in.size(), shape.size(), shape);
  check(name(), "the message", out.size(), codec.encoded_bytes(shape), shape);
  check(name(), "the state", how.state.size(), codec.state_size(shape), shape);
  check(name(), "the next state", how.next_state.size(), codec.state_size(shape), shape);
  codec.encode(in, shape, how, out);
}

void Codec::decode(std::span<const std::byte> in, Matrix shape, std::span<float> out) const {
  const CodecImplementation& codec = implementation();
  check(name(), "what is decoded into", out.size(), shape.size(), shape);
  if (in.size() != codec.encoded_bytes(shape)) {
    throw_damaged(name(), fmt::format("it has {} bytes, where {} x {} numbers take {}", in.size(), shape.rows,
                                      shape.columns, codec.encoded_bytes(shape)));
  }
  codec.decode(in, shape, out);
}

}  // namespace brigade::comm
