#include "brigade/comm/compress/codecs.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "comm/compress/half.cpp"
#include <hwy/foreach_target.h>  // compiles this file once for each instruction set
#include <hwy/highway.h>

#include <cstring>

#include "comm/formats-inl.h"

HWY_BEFORE_NAMESPACE();
namespace brigade::comm::HWY_NAMESPACE {

// convert(from, to) takes one vector; the last numbers fill one of their own.
template <class From, class To, class Convert>
HWY_INLINE void convert_all(std::size_t count, const From* from, To* to, const Convert& convert) {
  const hn::ScalableTag<float> d;
  const std::size_t lanes = hn::Lanes(d);
  std::size_t at = 0;
  for (; at + lanes <= count; at += lanes) convert(from + at, to + at);
  if (at == count) return;
  HWY_ALIGN From padded[hn::MaxLanes(d)] = {};
  HWY_ALIGN To last[hn::MaxLanes(d)];
  std::memcpy(padded, from + at, (count - at) * sizeof(From));
  convert(padded, last);
  std::memcpy(to + at, last, (count - at) * sizeof(To));
}

// Vectors are loaded and stored at any address.
template <class Format>
void to_half(std::span<const float> in, std::span<std::byte> out) {
  convert_all(in.size(), in.data(), reinterpret_cast<std::uint16_t*>(out.data()),
              [](const float* from, std::uint16_t* to) HWY_ATTR {
                const hn::ScalableTag<float> d;
                hn::StoreU(Format::encode(d, hn::LoadU(d, from)), hn::Rebind<std::uint16_t, decltype(d)>(), to);
              });
}
template <class Format>
void from_half(std::span<const std::byte> in, std::span<float> out) {
  convert_all(out.size(), reinterpret_cast<const std::uint16_t*>(in.data()), out.data(),
              [](const std::uint16_t* from, float* to) HWY_ATTR {
                const hn::ScalableTag<float> d;
                hn::StoreU(Format::decode(d, hn::LoadU(hn::Rebind<std::uint16_t, decltype(d)>(), from)), d, to);
              });
}

void to_fp16(std::span<const float> in, std::span<std::byte> out) { to_half<Float16>(in, out); }
void to_bf16(std::span<const float> in, std::span<std::byte> out) { to_half<BFloat16>(in, out); }
void from_fp16(std::span<const std::byte> in, std::span<float> out) { from_half<Float16>(in, out); }
void from_bf16(std::span<const std::byte> in, std::span<float> out) { from_half<BFloat16>(in, out); }

}  // namespace brigade::comm::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "comm/compress/implementation.h"

namespace brigade::comm {
HWY_EXPORT(to_fp16);
HWY_EXPORT(to_bf16);
HWY_EXPORT(from_fp16);
HWY_EXPORT(from_bf16);

namespace {

class Half : public CodecImplementation {
 public:
  std::string describe() const override { return std::string(name()); }
  std::size_t encoded_bytes(Matrix shape) const override { return shape.size() * sizeof(std::uint16_t); }
  bool wants_error_feedback() const override { return false; }
};

class Fp16 : public Half {
 public:
  std::string_view name() const override { return "fp16"; }
  void encode(std::span<const float> in, Matrix, const Encoding&, std::span<std::byte> out) const override {
    HWY_DYNAMIC_DISPATCH(to_fp16)(in, out);
  }
  void decode(std::span<const std::byte> in, Matrix, std::span<float> out) const override {
    HWY_DYNAMIC_DISPATCH(from_fp16)(in, out);
  }
};

class Bf16 : public Half {
 public:
  std::string_view name() const override { return "bf16"; }
  void encode(std::span<const float> in, Matrix, const Encoding&, std::span<std::byte> out) const override {
    HWY_DYNAMIC_DISPATCH(to_bf16)(in, out);
  }
  void decode(std::span<const std::byte> in, Matrix, std::span<float> out) const override {
    HWY_DYNAMIC_DISPATCH(from_bf16)(in, out);
  }
};

}  // namespace
}  // namespace brigade::comm

namespace brigade::compress {

comm::Codec fp16() { return comm::Codec(std::make_shared<comm::Fp16>()); }
comm::Codec bf16() { return comm::Codec(std::make_shared<comm::Bf16>()); }

}  // namespace brigade::compress
#endif  // HWY_ONCE
