// A message is the columns of P, then those of Q; of a matrix that is no smaller so, its numbers.
#include "brigade/comm/compress/codecs.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "comm/compress/powersgd.cpp"
#include <hwy/foreach_target.h>  // compiles this file once for each instruction set
#include <hwy/highway.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "comm/compress/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace brigade::comm::HWY_NAMESPACE {

using Floats = hn::CappedTag<float, kSumLanes>;

// The sum of products, in lanes as all sums here.
HWY_INLINE float dot(const float* a, const float* b, std::size_t count) {
  const Floats d;
  LaneSums<float> sums;
  const auto add = [&](const float* x, const float* y) HWY_ATTR {
    for (std::size_t lane = 0; lane < kSumLanes; lane += hn::Lanes(d)) {
      sums.add(d, lane, hn::Mul(hn::LoadU(d, x + lane), hn::LoadU(d, y + lane)));
    }
  };
  std::size_t at = 0;
  for (; at + kSumLanes <= count; at += kSumLanes) add(a + at, b + at);
  if (at < count) {
    HWY_ALIGN float last[2][kSumLanes] = {};
    std::memcpy(last[0], a + at, (count - at) * sizeof(float));
    std::memcpy(last[1], b + at, (count - at) * sizeof(float));
    add(last[0], last[1]);
  }
  return sums.sum();
}

// to += factor * from
HWY_INLINE void add_scaled(float factor, const float* from, float* to, std::size_t count) {
  const hn::ScalableTag<float> d;
  const auto f = hn::Set(d, factor);
  std::size_t at = 0;
  for (; at + hn::Lanes(d) <= count; at += hn::Lanes(d)) {
    hn::StoreU(hn::Add(hn::LoadU(d, to + at), hn::Mul(f, hn::LoadU(d, from + at))), d, to + at);
  }
  for (; at < count; ++at) to[at] += factor * from[at];
}

// Factors lie column after column.

// p = m q
void times_q(const float* m, Matrix shape, std::size_t rank, const float* q, float* p) {
  for (std::size_t row = 0; row < shape.rows; ++row) {
    for (std::size_t k = 0; k < rank; ++k) {
      p[k * shape.rows + row] = dot(m + row * shape.columns, q + k * shape.columns, shape.columns);
    }
  }
}

// q = m^T p
void times_p(const float* m, Matrix shape, std::size_t rank, const float* p, float* q) {
  std::fill(q, q + rank * shape.columns, 0.0F);
  for (std::size_t row = 0; row < shape.rows; ++row) {
    for (std::size_t k = 0; k < rank; ++k) {
      add_scaled(p[k * shape.rows + row], m + row * shape.columns, q + k * shape.columns, shape.columns);
    }
  }
}

// m = p q^T
void product(const float* p, const float* q, Matrix shape, std::size_t rank, float* m) {
  std::fill(m, m + shape.size(), 0.0F);
  for (std::size_t row = 0; row < shape.rows; ++row) {
    for (std::size_t k = 0; k < rank; ++k) {
      add_scaled(p[k * shape.rows + row], q + k * shape.columns, m + row * shape.columns, shape.columns);
    }
  }
}

}  // namespace brigade::comm::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "brigade/base/error.h"
#include "comm/compress/implementation.h"
#include "comm/compress/message.h"
#include "comm/compress/orthonormal.h"

namespace brigade::comm {
HWY_EXPORT(times_q);
HWY_EXPORT(times_p);
HWY_EXPORT(product);

namespace {

// Columns to begin with: of those that the last step left, scaled to 1 so that their size neither grows nor shrinks with
// gradients'; in place of zeros, uniform in [-1, 1), which meets every direction.
std::vector<float> start_of(std::span<const float> before, std::size_t columns, ThreefryKey key) {
  std::vector<float> q(before.begin(), before.end());
  for (std::size_t begin = 0; begin < q.size(); begin += columns) {
    const std::span<float> column = std::span(q).subspan(begin, columns);
    if (normalise(column)) continue;
    for (std::size_t i = 0; i < columns; ++i) {
      const auto word = threefry2x32(key, static_cast<std::uint64_t>(begin + i))[0];
      column[i] = static_cast<float>(static_cast<std::int32_t>(word >> 8) - (1 << 23)) * 0x1p-23F;
    }
  }
  return q;
}

class PowerSgd : public CodecImplementation {
 public:
  explicit PowerSgd(compress::PowerSgdOptions options) : rank_(options.rank) {
    if (rank_ == 0) throw InvalidArgument("powersgd: rank is 0: give 1 or more");
  }

  std::string_view name() const override { return "powersgd"; }
  std::string describe() const override { return fmt::format("powersgd, rank {}", rank_); }
  std::size_t encoded_bytes(Matrix shape) const override {
    return (is_factored(shape) ? rank_ * (shape.rows + shape.columns) : shape.size()) * sizeof(float);
  }
  bool wants_error_feedback() const override { return true; }
  std::size_t state_size(Matrix shape) const override { return is_factored(shape) ? rank_ * shape.columns : 0; }

  void encode(std::span<const float> in, Matrix shape, const Encoding& how, std::span<std::byte> out) const override {
    if (!is_factored(shape)) return write(out, 0, in);
    std::vector<float> q = start_of(how.state, shape.columns, how.key);
    std::vector<float> p(rank_ * shape.rows);
    HWY_DYNAMIC_DISPATCH(times_q)(in.data(), shape, rank_, q.data(), p.data());
    make_orthonormal(p, shape.rows);
    HWY_DYNAMIC_DISPATCH(times_p)(in.data(), shape, rank_, p.data(), q.data());
    write(out, 0, std::span<const float>(p));
    write(out, p.size(), std::span<const float>(q));
    std::copy(q.begin(), q.end(), how.next_state.begin());
  }

  void decode(std::span<const std::byte> in, Matrix shape, std::span<float> out) const override {
    if (!is_factored(shape)) return read(in, 0, out);
    std::vector<float> p(rank_ * shape.rows);
    std::vector<float> q(rank_ * shape.columns);
    read(in, 0, std::span(p));
    read(in, p.size(), std::span(q));
    HWY_DYNAMIC_DISPATCH(product)(p.data(), q.data(), shape, rank_, out.data());
  }

 private:
  // Whether the factors are smaller. The rank is below both sides then.
  bool is_factored(Matrix shape) const {
    return rank_ < std::min(shape.rows, shape.columns) && rank_ * (shape.rows + shape.columns) < shape.size();
  }

  std::size_t rank_;
};

}  // namespace
}  // namespace brigade::comm

brigade::comm::Codec brigade::compress::powersgd(PowerSgdOptions options) {
  return comm::Codec(std::make_shared<comm::PowerSgd>(options));
}
#endif  // HWY_ONCE
