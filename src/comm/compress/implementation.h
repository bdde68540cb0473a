// What stands behind a Codec. Whoever implements one is handed spans that fit the shape: Codec has checked them, and the length of
// messages to be decoded.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "brigade/comm/compress/codec.h"

namespace brigade::comm {

class CodecImplementation {
 public:
  virtual ~CodecImplementation() = default;

  virtual std::string_view name() const = 0;
  virtual std::string describe() const = 0;
  virtual std::size_t encoded_bytes(Matrix shape) const = 0;
  virtual bool wants_error_feedback() const = 0;
  virtual std::size_t state_size(Matrix /*shape*/) const { return 0; }
  virtual std::size_t residual_size(Matrix /*shape*/) const { return 0; }
  virtual void encode(std::span<const float> in, Matrix shape, const Encoding& how, std::span<std::byte> out) const = 0;
  virtual void decode(std::span<const std::byte> in, Matrix shape, std::span<float> out) const = 0;

 protected:
  CodecImplementation() = default;
  CodecImplementation(const CodecImplementation&) = delete;
  CodecImplementation& operator=(const CodecImplementation&) = delete;
};

}  // namespace brigade::comm
