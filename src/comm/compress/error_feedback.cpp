#include <fmt/format.h>

#include <memory>

#include "brigade/base/error.h"
#include "brigade/comm/compress/codecs.h"
#include "comm/compress/implementation.h"

namespace brigade::comm {
namespace {

class ErrorFeedback : public CodecImplementation {
 public:
  explicit ErrorFeedback(Codec codec) : codec_(std::move(codec)) {
    if (codec_.residual_size(1) == 0) return;
    throw InvalidArgument(fmt::format("error_feedback around {}: it has error feedback already", codec_.describe()));
  }

  std::string_view name() const override { return codec_.name(); }
  std::string describe() const override { return codec_.describe() + ", error feedback"; }
  std::size_t encoded_bytes(Matrix shape) const override { return codec_.encoded_bytes(shape); }
  bool wants_error_feedback() const override { return false; }
  std::size_t state_size(Matrix shape) const override { return shape.size() + codec_.state_size(shape); }
  std::size_t residual_size(Matrix shape) const override { return shape.size(); }

  void encode(std::span<const float> in, Matrix shape, const Encoding& how, std::span<std::byte> out) const override {
    const std::size_t count = in.size();
    const std::span<float> residual = how.next_state.first(count);
    for (std::size_t i = 0; i < count; ++i) residual[i] = in[i] + how.residual_scale * how.state[i];
    codec_.encode(residual, shape,
                  {.key = how.key, .state = how.state.subspan(count), .next_state = how.next_state.subspan(count)},
                  out);
    const auto decoded = std::make_unique_for_overwrite<float[]>(count);
    codec_.decode(out, shape, {decoded.get(), count});
    for (std::size_t i = 0; i < count; ++i) residual[i] -= decoded[i];
  }

  void decode(std::span<const std::byte> in, Matrix shape, std::span<float> out) const override {
    codec_.decode(in, shape, out);
  }

 private:
  Codec codec_;
};

}  // namespace
}  // namespace brigade::comm

brigade::comm::Codec brigade::compress::error_feedback(const comm::Codec& codec) {
  return comm::Codec(std::make_shared<comm::ErrorFeedback>(codec));
}
