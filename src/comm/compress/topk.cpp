// A message is the indices of the numbers that are sent, ascending, as 32 bits each, then those numbers.
#include "brigade/comm/compress/codecs.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "comm/compress/topk.cpp"
#include <hwy/foreach_target.h>  // compiles this file once for each instruction set
#include <hwy/highway.h>

#include <bit>
#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace brigade::comm::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// As integers, magnitudes order as the numbers do, NaN above infinity.
HWY_INLINE std::int32_t magnitude_of(float x) { return std::bit_cast<std::int32_t>(x) & 0x7FFFFFFF; }

// The indices of numbers whose magnitude is `least` or more, ascending; there is room for all of them. Few are, so most vectors are
// passed over.
void indices_from(std::span<const float> in, std::int32_t least, std::uint32_t* indices) {
  const hn::ScalableTag<float> d;
  const hn::RebindToSigned<decltype(d)> di;
  const auto mask = hn::Set(di, 0x7FFFFFFF);
  const auto bound = hn::Set(di, least - 1);
  const std::size_t lanes = hn::Lanes(d);
  const auto take = [&](std::size_t i) HWY_ATTR {
    if (magnitude_of(in[i]) >= least) *indices++ = static_cast<std::uint32_t>(i);
  };
  std::size_t at = 0;
  for (; at + lanes <= in.size(); at += lanes) {
    const auto magnitudes = hn::And(hn::BitCast(di, hn::LoadU(d, in.data() + at)), mask);
    if (hn::AllFalse(di, hn::Gt(magnitudes, bound))) continue;
    for (std::size_t lane = 0; lane < lanes; ++lane) take(at + lane);
  }
  for (; at < in.size(); ++at) take(at);
}

}  // namespace brigade::comm::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <vector>

#include "brigade/base/error.h"
#include "comm/compress/implementation.h"
#include "comm/compress/message.h"

namespace brigade::comm {
HWY_EXPORT(indices_from);

namespace {

std::int32_t magnitude_of(float x) { return std::bit_cast<std::int32_t>(x) & 0x7FFFFFFF; }

// The upper bits of magnitudes: exponent and the first three of the fraction.
constexpr int kBinShift = 20;
constexpr std::size_t kBins = std::size_t{1} << (31 - kBinShift);
using Bins = std::array<std::uint32_t, kBins>;

Bins bins_of(std::span<const float> in) {
  // Two, as neighbours mostly count in one bin, and would wait for each other.
  Bins bins = {};
  Bins others = {};
  std::size_t i = 0;
  for (; i + 1 < in.size(); i += 2) {
    ++bins[static_cast<std::size_t>(magnitude_of(in[i])) >> kBinShift];
    ++others[static_cast<std::size_t>(magnitude_of(in[i + 1])) >> kBinShift];
  }
  if (i < in.size()) ++bins[static_cast<std::size_t>(magnitude_of(in[i])) >> kBinShift];
  for (std::size_t bin = 0; bin < kBins; ++bin) bins[bin] += others[bin];
  return bins;
}

// The indices, ascending, of the `count` largest, 1 <= count <= in.size().
std::vector<std::uint32_t> largest(std::span<const float> in, std::size_t count) {
  const Bins bins = bins_of(in);
  std::size_t candidates = 0;
  std::size_t bin = kBins;
  while (candidates < count) candidates += bins[--bin];

  std::vector<std::uint32_t> indices(candidates);
  HWY_DYNAMIC_DISPATCH(indices_from)(in, static_cast<std::int32_t>(bin << kBinShift), indices.data());
  std::vector<std::int32_t> magnitudes(candidates);
  for (std::size_t i = 0; i < candidates; ++i) magnitudes[i] = magnitude_of(in[indices[i]]);
  const auto last = magnitudes.begin() + static_cast<std::ptrdiff_t>(count - 1);
  std::nth_element(magnitudes.begin(), last, magnitudes.end(), std::greater());
  const std::int32_t least = *last;
  auto ties = count - static_cast<std::size_t>(std::count_if(
                          magnitudes.begin(), last, [least](std::int32_t magnitude) { return magnitude > least; }));
  std::erase_if(indices, [&](std::uint32_t index) {
    const std::int32_t magnitude = magnitude_of(in[index]);
    if (magnitude != least) return magnitude < least;
    if (ties == 0) return true;
    --ties;
    return false;
  });
  return indices;
}

class TopK : public CodecImplementation {
 public:
  explicit TopK(compress::TopKOptions options) : ratio_(options.ratio) {
    if (!(ratio_ > 0 && ratio_ <= 1))
      throw InvalidArgument(fmt::format("topk: ratio is {}: give a number above 0, to 1", ratio_));
  }

  std::string_view name() const override { return "topk"; }
  std::string describe() const override { return fmt::format("topk, ratio {}", ratio_); }
  std::size_t encoded_bytes(Matrix shape) const override {
    return sent_of(shape.size()) * (sizeof(std::uint32_t) + sizeof(float));
  }
  bool wants_error_feedback() const override { return true; }

  void encode(std::span<const float> in, Matrix, const Encoding&, std::span<std::byte> out) const override {
    if (in.size() > std::numeric_limits<std::uint32_t>::max()) {
      throw InvalidArgument(fmt::format("topk: {} numbers; an index has 32 bits: cut the tensor", in.size()));
    }
    const std::size_t sent = sent_of(in.size());
    if (sent == 0) return;
    const std::vector<std::uint32_t> indices = largest(in, sent);
    write(out, 0, std::span<const std::uint32_t>(indices));
    for (std::size_t i = 0; i < sent; ++i) write_one(out, sent + i, in[indices[i]]);
  }

  void decode(std::span<const std::byte> in, Matrix, std::span<float> out) const override {
    const std::size_t sent = sent_of(out.size());
    std::fill(out.begin(), out.end(), 0.0F);
    std::size_t least = 0;
    for (std::size_t i = 0; i < sent; ++i) {
      const auto index = read_one<std::uint32_t>(in, i);
      if (index < least || index >= out.size()) {
        throw_damaged("topk",
                      fmt::format("index {} is number {}, where {} to {} can be", index, i, least, out.size() - 1));
      }
      out[index] = read_one<float>(in, sent + i);
      least = std::size_t{index} + 1;
    }
  }

 private:
  // At least one of any, and never more than there are, whatever the product is rounded to.
  std::size_t sent_of(std::size_t count) const {
    return std::min(count, static_cast<std::size_t>(std::ceil(ratio_ * static_cast<double>(count))));
  }

  double ratio_;
};

}  // namespace
}  // namespace brigade::comm

brigade::comm::Codec brigade::compress::topk(TopKOptions options) {
  return comm::Codec(std::make_shared<comm::TopK>(options));
}
#endif  // HWY_ONCE
