// A message is two means for each block, of the numbers that are not below zero and of those that are, and then one bit for every
// number, in 64-bit words: 1 for those that are.
#include "brigade/comm/compress/codecs.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "comm/compress/onebit.cpp"
#include <hwy/foreach_target.h>  // compiles this file once for each instruction set
#include <hwy/highway.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "comm/compress/lanes-inl.h"
#include "comm/compress/message.h"

HWY_BEFORE_NAMESPACE();
namespace brigade::comm::HWY_NAMESPACE {

using Bits = hn::CappedTag<float, kSumLanes>;

template <class M>
HWY_INLINE std::uint64_t word_of(const M& mask) {
  const Bits d;
  std::uint64_t word = 0;
  hn::StoreMaskBits(d, mask, reinterpret_cast<std::uint8_t*>(&word));  // bits beyond the lanes are zero
  return word;
}

// Signs of a group, whose numbers are added to the lanes of the two sums.
HWY_INLINE std::uint64_t add_group(const float* numbers, SumLanes& others, SumLanes& below) {
  const Bits d;
  std::uint64_t signs = 0;
  for (std::size_t i = 0; i < kGroup; i += hn::Lanes(d)) {
    const auto x = hn::LoadU(d, numbers + i);
    signs |= word_of(hn::Lt(x, hn::Zero(d))) << i;
  }
  for (std::size_t i = 0; i < kGroup; i += kSumLanes) {
    for_each_sum(numbers + i, [&](auto ds, std::size_t lane, auto x) HWY_ATTR {
      const auto is_below = hn::Lt(x, hn::Zero(ds));
      others.add(ds, lane, hn::IfThenZeroElse(is_below, x));
      below.add(ds, lane, hn::IfThenElseZero(is_below, x));
    });
  }
  return signs;
}

struct Means {
  float others = 0;
  float below = 0;
};

// A NaN or an infinity shows in the sum that it is in, and makes both NaN.
HWY_INLINE Means means_of(double others, double below, std::size_t count, std::size_t count_below) {
  if (!std::isfinite(others) || !std::isfinite(below)) {
    return {.others = std::numeric_limits<float>::quiet_NaN(), .below = std::numeric_limits<float>::quiet_NaN()};
  }
  const auto mean = [](double sum, std::size_t of) {
    return of == 0 ? 0.0F : static_cast<float>(sum / static_cast<double>(of));
  };
  return {.others = mean(others, count - count_below), .below = mean(below, count_below)};
}

void onebit_encode(std::span<const float> in, std::size_t block, std::span<std::byte> out) {
  const std::size_t blocks = parts_of(in.size(), block);
  const std::span<std::byte> words = out.subspan(2 * blocks * sizeof(float));
  for (std::size_t b = 0; b < blocks; ++b) {
    SumLanes others;
    SumLanes below;
    std::size_t count_below = 0;
    const std::size_t begin = b * block;
    const std::size_t end = HWY_MIN(begin + block, in.size());
    for (std::size_t i = begin; i < end; i += kGroup) {
      // Zeros, which are not below zero and change no sum, fill the last group.
      HWY_ALIGN float last[kGroup] = {};
      const float* group = in.data() + i;
      if (end - i < kGroup) {
        std::memcpy(last, group, (end - i) * sizeof(float));
        group = last;
      }
      const std::uint64_t signs = add_group(group, others, below);
      count_below += static_cast<std::size_t>(std::popcount(signs));
      write_one(words, i / kGroup, signs);
    }
    const Means means = means_of(others.sum(), below.sum(), end - begin, count_below);
    write_one(out, 2 * b, means.others);
    write_one(out, 2 * b + 1, means.below);
  }
}

HWY_INLINE void choose_group(std::uint64_t signs, const Means& means, float* to) {
  const Bits d;
  const auto others = hn::Set(d, means.others);
  const auto below = hn::Set(d, means.below);
  for (std::size_t i = 0; i < kGroup; i += hn::Lanes(d)) {
    const std::uint64_t word = signs >> i;
    const auto is_below = hn::LoadMaskBits(d, reinterpret_cast<const std::uint8_t*>(&word));
    hn::StoreU(hn::IfThenElse(is_below, below, others), d, to + i);
  }
}

void onebit_decode(std::span<const std::byte> in, std::size_t block, std::span<float> out) {
  const std::size_t blocks = parts_of(out.size(), block);
  const std::span<const std::byte> words = in.subspan(2 * blocks * sizeof(float));
  for (std::size_t b = 0; b < blocks; ++b) {
    const Means means = {.others = read_one<float>(in, 2 * b), .below = read_one<float>(in, 2 * b + 1)};
    const std::size_t end = HWY_MIN((b + 1) * block, out.size());
    for (std::size_t i = b * block; i < end; i += kGroup) {
      const auto signs = read_one<std::uint64_t>(words, i / kGroup);
      if (end - i >= kGroup) {
        choose_group(signs, means, out.data() + i);
      } else {
        HWY_ALIGN float last[kGroup];
        choose_group(signs, means, last);
        std::memcpy(out.data() + i, last, (end - i) * sizeof(float));
      }
    }
  }
}

}  // namespace brigade::comm::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <fmt/format.h>

#include "comm/compress/implementation.h"

namespace brigade::comm {
HWY_EXPORT(onebit_encode);
HWY_EXPORT(onebit_decode);

namespace {

class OneBit : public CodecImplementation {
 public:
  explicit OneBit(compress::OneBitOptions options) : block_(options.block) { check_block("onebit", block_); }

  std::string_view name() const override { return "onebit"; }
  std::string describe() const override {
    return block_ == compress::OneBitOptions().block ? "onebit" : fmt::format("onebit, blocks of {}", block_);
  }
  std::size_t encoded_bytes(Matrix shape) const override {
    return means_bytes(shape) + parts_of(shape.size(), kGroup) * sizeof(std::uint64_t);
  }
  bool wants_error_feedback() const override { return true; }
  void encode(std::span<const float> in, Matrix, const Encoding&, std::span<std::byte> out) const override {
    HWY_DYNAMIC_DISPATCH(onebit_encode)(in, block_, out);
  }
  void decode(std::span<const std::byte> in, Matrix shape, std::span<float> out) const override {
    check(in, shape);
    HWY_DYNAMIC_DISPATCH(onebit_decode)(in, block_, out);
  }

 private:
  std::size_t means_bytes(Matrix shape) const { return 2 * parts_of(shape.size(), block_) * sizeof(float); }

  void check(std::span<const std::byte> in, Matrix shape) const {
    for (std::size_t b = 0; b < parts_of(shape.size(), block_); ++b) {
      const auto others = read_one<float>(in, 2 * b);
      const auto below = read_one<float>(in, 2 * b + 1);
      const bool are_nan = std::isnan(others) && std::isnan(below);
      if (are_nan || (std::isfinite(others) && std::isfinite(below) && others >= 0 && below <= 0)) continue;
      throw_damaged("onebit", fmt::format("block {} has the means {} and {}", b, others, below));
    }
    const std::size_t rest = shape.size() % kGroup;
    if (rest == 0) return;
    const auto last = read_one<std::uint64_t>(in.subspan(means_bytes(shape)), shape.size() / kGroup);
    if (last >> rest != 0) throw_damaged("onebit", "there are signs behind the last number");
  }

  std::size_t block_;
};

}  // namespace
}  // namespace brigade::comm

brigade::comm::Codec brigade::compress::onebit(OneBitOptions options) {
  return comm::Codec(std::make_shared<comm::OneBit>(options));
}
#endif  // HWY_ONCE
