// A message is the scales of all blocks, then the levels of all numbers.
#include "brigade/comm/compress/codecs.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "comm/compress/int8.cpp"
#include <hwy/foreach_target.h>  // compiles this file once for each instruction set
#include <hwy/highway.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "brigade/base/threefry-inl.h"
#include "comm/compress/message.h"

HWY_BEFORE_NAMESPACE();
namespace brigade::comm::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using brigade::HWY_NAMESPACE::threefry;

// A group is four times the lanes of the largest vector that takes part, so that a block of 64 random bits serves four numbers on
// every instruction set.
constexpr std::size_t kCounters = kGroup / 4;
using Floats = hn::CappedTag<float, kCounters>;

constexpr std::int32_t kMagnitude = 0x7FFFFFFF;
constexpr std::int32_t kInfinity = 0x7F800000;
constexpr float kTopLevel = 127;

// As integers, magnitudes order as the numbers do, NaN above infinity. `count` is a multiple of kGroup.
HWY_INLINE std::int32_t largest_magnitude(const float* numbers, std::size_t count) {
  const Floats d;
  const hn::RebindToSigned<Floats> di;
  const auto mask = hn::Set(di, kMagnitude);
  auto largest = hn::Zero(di);
  for (std::size_t i = 0; i < count; i += hn::Lanes(d)) {
    largest = hn::Max(largest, hn::And(hn::BitCast(di, hn::LoadU(d, numbers + i)), mask));
  }
  return hn::GetLane(hn::MaxOfLanes(di, largest));
}

// Rounded up, so that no number lies above the top level, unless that level would be infinite. NaN for a block that is to be.
HWY_INLINE float scale_of(std::int32_t largest_bits) {
  if (largest_bits >= kInfinity) return std::numeric_limits<float>::quiet_NaN();
  const auto largest = std::bit_cast<float>(largest_bits);
  float scale = largest / kTopLevel;
  if (static_cast<double>(scale) * static_cast<double>(kTopLevel) < static_cast<double>(largest)) {
    scale = std::nextafter(scale, std::numeric_limits<float>::infinity());
  }
  return std::isfinite(scale * kTopLevel) ? scale : std::nextafter(scale, 0.0F);
}

// floor(x / scale + u) for a u of 16 random bits: (bits + 1/2) / 2^16, never 0 and never 1, so that levels stay.
HWY_INLINE void round_vector(const float* from, hn::Vec<Floats> scale, hn::Vec<hn::RebindToUnsigned<Floats>> bits,
                             std::int8_t* to) {
  const Floats d;
  const hn::RebindToSigned<Floats> di;
  const auto u = hn::Add(hn::Mul(hn::ConvertTo(d, hn::BitCast(di, bits)), hn::Set(d, 0x1p-16F)), hn::Set(d, 0x1p-17F));
  const auto level = hn::Floor(hn::Add(hn::Div(hn::LoadU(d, from), scale), u));
  const auto kept = hn::Min(hn::Max(level, hn::Set(d, -kTopLevel)), hn::Set(d, kTopLevel));
  hn::StoreU(hn::DemoteTo(hn::Rebind<std::int8_t, Floats>(), hn::ConvertTo(di, kept)),
             hn::Rebind<std::int8_t, Floats>(), to);
}

// Counters are numbered through all groups of a tensor.
HWY_INLINE void round_group(ThreefryKey key, std::uint64_t group, float scale, const float* from, std::int8_t* to) {
  const Floats d;
  const hn::RebindToUnsigned<Floats> du;
  const auto low_half = hn::Set(du, 0xFFFF);
  const std::uint64_t first = group * kCounters;  // none carries into the upper word within a group
  for (std::size_t j = 0; j < kCounters; j += hn::Lanes(d)) {
    auto x0 = hn::Set(du, static_cast<std::uint32_t>(first >> 32));
    auto x1 = hn::Iota(du, static_cast<std::uint32_t>(first + j));
    threefry(du, key, x0, x1);
    const auto s = hn::Set(d, scale);
    round_vector(from + j, s, hn::And(x0, low_half), to + j);
    round_vector(from + j + kCounters, s, hn::ShiftRight<16>(x0), to + j + kCounters);
    round_vector(from + j + 2 * kCounters, s, hn::And(x1, low_half), to + j + 2 * kCounters);
    round_vector(from + j + 3 * kCounters, s, hn::ShiftRight<16>(x1), to + j + 3 * kCounters);
  }
}

void int8_encode(std::span<const float> in, std::size_t block, ThreefryKey key, std::span<std::byte> out) {
  const std::size_t blocks = parts_of(in.size(), block);
  auto* const levels = reinterpret_cast<std::int8_t*>(out.data() + blocks * sizeof(float));
  for (std::size_t b = 0; b < blocks; ++b) {
    const std::size_t begin = b * block;
    const std::size_t count = HWY_MIN(block, in.size() - begin);
    const std::size_t whole = count - count % kGroup;
    // What does not fill a group is filled up with zeros.
    HWY_ALIGN float last[kGroup] = {};
    std::memcpy(last, in.data() + begin + whole, (count - whole) * sizeof(float));
    const float scale = scale_of(
        HWY_MAX(largest_magnitude(in.data() + begin, whole), largest_magnitude(last, whole < count ? kGroup : 0)));
    write_one(out, b, scale);
    if (!(scale > 0)) {
      std::memset(levels + begin, 0, count);
      continue;
    }
    for (std::size_t i = 0; i < whole; i += kGroup) {
      round_group(key, (begin + i) / kGroup, scale, in.data() + begin + i, levels + begin + i);
    }
    if (whole == count) continue;
    HWY_ALIGN std::int8_t rounded[kGroup];
    round_group(key, (begin + whole) / kGroup, scale, last, rounded);
    std::memcpy(levels + begin + whole, rounded, count - whole);
  }
}

// Returns whether all levels are ones that can be.
HWY_INLINE bool scale_group(const std::int8_t* levels, float scale, float* to) {
  const Floats d;
  const hn::RebindToSigned<Floats> di;
  auto lowest = hn::Zero(di);
  for (std::size_t i = 0; i < kGroup; i += hn::Lanes(d)) {
    const auto level = hn::PromoteTo(di, hn::LoadU(hn::Rebind<std::int8_t, Floats>(), levels + i));
    lowest = hn::Min(lowest, level);
    hn::StoreU(hn::Mul(hn::ConvertTo(d, level), hn::Set(d, scale)), d, to + i);
  }
  return hn::AllTrue(di, hn::Gt(lowest, hn::Set(di, -128)));
}

// The first block with a level that cannot be; `blocks` when there is none.
std::size_t int8_decode(std::span<const std::byte> in, std::size_t block, std::span<float> out) {
  const std::size_t blocks = parts_of(out.size(), block);
  const auto* const levels = reinterpret_cast<const std::int8_t*>(in.data() + blocks * sizeof(float));
  for (std::size_t b = 0; b < blocks; ++b) {
    const auto scale = read_one<float>(in, b);
    const std::size_t end = HWY_MIN((b + 1) * block, out.size());
    std::size_t i = b * block;
    for (; i + kGroup <= end; i += kGroup) {
      if (!scale_group(levels + i, scale, out.data() + i)) return b;
    }
    if (i == end) continue;
    HWY_ALIGN std::int8_t last[kGroup] = {};
    HWY_ALIGN float scaled[kGroup];
    std::memcpy(last, levels + i, end - i);
    if (!scale_group(last, scale, scaled)) return b;
    std::memcpy(out.data() + i, scaled, (end - i) * sizeof(float));
  }
  return blocks;
}

}  // namespace brigade::comm::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <fmt/format.h>

#include "comm/compress/implementation.h"

namespace brigade::comm {
HWY_EXPORT(int8_encode);
HWY_EXPORT(int8_decode);

namespace {

class Int8 : public CodecImplementation {
 public:
  explicit Int8(compress::Int8Options options) : block_(options.block) { check_block("int8", block_); }

  std::string_view name() const override { return "int8"; }
  std::string describe() const override {
    return block_ == compress::Int8Options().block ? "int8" : fmt::format("int8, blocks of {}", block_);
  }
  std::size_t encoded_bytes(Matrix shape) const override {
    return parts_of(shape.size(), block_) * sizeof(float) + shape.size();
  }
  bool wants_error_feedback() const override { return true; }
  void encode(std::span<const float> in, Matrix, const Encoding& how, std::span<std::byte> out) const override {
    HWY_DYNAMIC_DISPATCH(int8_encode)(in, block_, how.key, out);
  }
  void decode(std::span<const std::byte> in, Matrix shape, std::span<float> out) const override {
    const std::size_t blocks = parts_of(shape.size(), block_);
    for (std::size_t b = 0; b < blocks; ++b) {
      const auto scale = read_one<float>(in, b);
      if (!std::isnan(scale) && (std::signbit(scale) || std::isinf(scale)))
        throw_damaged("int8", fmt::format("block {} has the scale {}", b, scale));
    }
    if (const std::size_t bad = HWY_DYNAMIC_DISPATCH(int8_decode)(in, block_, out); bad < blocks) {
      throw_damaged("int8", fmt::format("block {} has the level -128", bad));
    }
  }

 private:
  std::size_t block_;
};

}  // namespace
}  // namespace brigade::comm

brigade::comm::Codec brigade::compress::int8(Int8Options options) {
  return comm::Codec(std::make_shared<comm::Int8>(options));
}
#endif  // HWY_ONCE
