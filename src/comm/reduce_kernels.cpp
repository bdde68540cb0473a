// Element-wise reductions on vectors, compiled once per instruction set and chosen at run time.
//
// The bits do not depend on the instruction set: no fused or reassociated arithmetic, comparisons and selections
// instead of the processors' differing min and max, one NaN for all results, and tails that run the same code on a
// padded vector.
#include "comm/reduce_kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "comm/reduce_kernels.cpp"
#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "comm/formats-inl.h"
#include "comm/quotient.h"

HWY_BEFORE_NAMESPACE();
namespace brigade::comm::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Two blocks of partial sums per level of the tree and the inputs' blocks fit in a first-level cache.
constexpr std::size_t kBlockBytes = 2048;

// The alignment of streaming stores: a line, so that it is never written in parts.
constexpr std::size_t kLineBytes = 64;

struct Sum {
  template <class D, class V>
  HWY_INLINE V operator()(D, V a, V b) const {
    return hn::Add(a, b);
  }
};

// Lt is false when either is NaN. Of equal values, such as the two zeros, the right one stays.
struct Min {
  template <class D, class V>
  HWY_INLINE V operator()(D, V a, V b) const {
    if constexpr (std::is_floating_point_v<hn::TFromD<D>>) {
      return hn::IfThenElse(hn::Or(hn::Lt(a, b), hn::IsNaN(a)), a, b);
    } else {
      return hn::Min(a, b);
    }
  }
};

struct Max {
  template <class D, class V>
  HWY_INLINE V operator()(D, V a, V b) const {
    if constexpr (std::is_floating_point_v<hn::TFromD<D>>) {
      return hn::IfThenElse(hn::Or(hn::Gt(a, b), hn::IsNaN(a)), a, b);
    } else {
      return hn::Max(a, b);
    }
  }
};

// Inputs that are combined in registers, without a partial result in memory. More pays where memory is the limit; every
// variant takes its time to compile, so only the sums that training is full of have those.
constexpr std::size_t kMaxFanIn = 4;
template <class Op, class Format>
constexpr std::size_t kFanIn =
    std::is_same_v<Op, Sum>&& kIsPlain<Format>&& std::is_floating_point_v<typename Format::Value> ? kMaxFanIn : 2;

// What happens to a combined vector before it is encoded.
struct Keep {
  template <class D, class V>
  HWY_INLINE V operator()(D, V v) const {
    return v;
  }
};

// On vectors where that rounds once, and else one number at a time.
template <class Format>
struct Divide {
  explicit Divide(double y) : divisor(y), on_vectors(Format::divides_by(y)) {}

  double divisor;
  bool on_vectors;

  template <class D, class V>
  HWY_INLINE V operator()(D d, V v) const {
    if constexpr (std::is_same_v<typename Format::Value, float>) {
      if (!on_vectors) return one_by_one(d, v);
    }
    return hn::Div(v, hn::Set(d, static_cast<typename Format::Value>(divisor)));
  }

  template <class D>
  HWY_NOINLINE hn::Vec<D> one_by_one(D d, hn::VecArg<hn::Vec<D>> v) const {
    HWY_ALIGN std::array<float, hn::MaxLanes(d)> lanes;
    hn::Store(v, d, lanes.data());
    for (float& lane : lanes) {
      lane = kIsPlain<Format> ? float_quotient(lane, divisor) : odd_float_quotient(lane, divisor);
    }
    return hn::Load(d, lanes.data());
  }
};

using Inputs = std::span<const std::span<const std::byte>>;

template <class T>
const T* elements(std::span<const std::byte> bytes) {
  return reinterpret_cast<const T*>(bytes.data());
}

template <class T>
T* elements(std::span<std::byte> bytes) {
  return reinterpret_cast<T*>(bytes.data());
}

// Where results go: from element `first` on, to every one of the spans.
struct Outputs {
  std::span<const std::span<std::byte>> spans;
  std::size_t first = 0;
  Stores stores = Stores::kCached;
};

template <class Format>
using From = std::array<const typename Format::Stored*, kMaxFanIn>;

// T(0, N) of one vector of each input.
template <std::size_t N, class Format, class D, class Op>
HWY_INLINE hn::Vec<D> tree_of_vectors(D d, Op op, const From<Format>& in, std::size_t at) {
  const hn::Rebind<typename Format::Stored, D> stored;
  const auto first = Format::decode(d, hn::LoadU(stored, in[0] + at));
  if constexpr (N == 1) {
    return first;
  } else {
    const auto pair = op(d, first, Format::decode(d, hn::LoadU(stored, in[1] + at)));
    if constexpr (N == 2) {
      return pair;
    } else {
      const auto third = Format::decode(d, hn::LoadU(stored, in[2] + at));
      if constexpr (N == 3) {
        return op(d, pair, third);
      } else {
        return op(d, pair, op(d, third, Format::decode(d, hn::LoadU(stored, in[3] + at))));
      }
    }
  }
}

// Stores vectors that follow each other to every output, from element `at` of the results on.
template <class D, class... V>
HWY_INLINE void store(D d, const Outputs& outs, std::size_t at, V... vectors) {
  using T = hn::TFromD<D>;
  for (const std::span<std::byte> span : outs.spans) {
    T* out = elements<T>(span) + outs.first + at;
    // Highway rounds a vector of less than 16 bytes up.
    if constexpr (hn::MaxLanes(d) * sizeof(T) >= HWY_STREAM_MULTIPLE) {
      const bool is_aligned = reinterpret_cast<std::uintptr_t>(out) % (hn::Lanes(d) * sizeof(T)) == 0;
      if (outs.stores == Stores::kStreaming && is_aligned) {
        ((hn::Stream(vectors, d, out), out += hn::Lanes(d)), ...);
        continue;
      }
    }
    ((hn::StoreU(vectors, d, out), out += hn::Lanes(d)), ...);
  }
}

// finish(T(0, N)) of the inputs' first `count` elements.
template <std::size_t N, class Op, class Source, class Result, class Finish>
HWY_NOINLINE void combine(const From<Source>& in, const Outputs& outs, std::size_t count, Finish finish) {
  const hn::ScalableTag<typename Source::Value> d;
  const hn::Rebind<typename Result::Stored, decltype(d)> stored;
  const std::size_t lanes = hn::Lanes(d);
  const auto result = [&](const From<Source>& from, std::size_t at) HWY_ATTR {
    return Result::encode(d, finish(d, tree_of_vectors<N, Source>(d, Op(), from, at)));
  };

  std::size_t at = 0;
  if constexpr (kIsPlain<Source>) {
    for (; at + 4 * lanes <= count; at += 4 * lanes) {
      store(stored, outs, at, result(in, at), result(in, at + lanes), result(in, at + 2 * lanes),
            result(in, at + 3 * lanes));
    }
  }
  for (; at + lanes <= count; at += lanes) store(stored, outs, at, result(in, at));
  if (at == count) return;

  // The last elements fill a vector of their own.
  HWY_ALIGN typename Source::Stored padded[N][hn::MaxLanes(d)] = {};
  HWY_ALIGN std::array<std::byte, hn::MaxLanes(stored) * sizeof(typename Result::Stored)> last;
  From<Source> from = {};
  for (std::size_t i = 0; i < N; ++i) {
    std::memcpy(padded[i], in[i] + at, (count - at) * sizeof padded[0][0]);
    from[i] = padded[i];
  }
  const std::span<std::byte> last_span = last;
  combine<N, Op, Source, Result>(from, {.spans = {&last_span, 1}}, lanes, finish);
  for (const std::span<std::byte> span : outs.spans) {
    std::memcpy(elements<typename Result::Stored>(span) + outs.first + at, last.data(),
                (count - at) * sizeof(typename Result::Stored));
  }
}

template <class Op, class Source, class Result, class Finish>
void tree(Inputs inputs, std::size_t at, std::size_t count, const Outputs& outs, Finish finish);

// T(0, P) of at most a block, where it lies already or in `memory`.
template <class Op, class Source>
const typename Source::Value* partial(Inputs inputs, std::size_t at, std::size_t count, std::span<std::byte> memory) {
  if constexpr (kIsPlain<Source>) {
    if (inputs.size() == 1) return elements<typename Source::Value>(inputs[0]) + at;
  }
  tree<Op, Source, Plain<typename Source::Value>>(inputs, at, count, {.spans = {&memory, 1}}, Keep());
  return elements<typename Source::Value>(memory);
}

// finish(T(0, P)) of `count` elements from element `at` on. Outputs may be inputs: no partial sum touches them.
template <class Op, class Source, class Result, class Finish>
void tree(Inputs inputs, std::size_t at, std::size_t count, const Outputs& outs, Finish finish) {
  constexpr std::size_t kIn = kFanIn<Op, Source>;
  if (inputs.size() <= kIn) {
    From<Source> in = {};
    for (std::size_t i = 0; i < inputs.size(); ++i) in[i] = elements<typename Source::Stored>(inputs[i]) + at;
    // A single input that needs no decoding is divided, which follows a sum only, or copied.
    if constexpr (std::is_same_v<Op, Sum> || !kIsPlain<Source>) {
      if (inputs.size() == 1) return combine<1, Op, Source, Result>(in, outs, count, finish);
    }
    if (inputs.size() == 2) return combine<2, Op, Source, Result>(in, outs, count, finish);
    if constexpr (kIn == kMaxFanIn) {
      if (inputs.size() == 3) return combine<3, Op, Source, Result>(in, outs, count, finish);
      return combine<4, Op, Source, Result>(in, outs, count, finish);
    }
  }
  HWY_ALIGN std::array<std::byte, kBlockBytes> left;
  HWY_ALIGN std::array<std::byte, kBlockBytes> right;
  const std::size_t half = std::bit_floor(inputs.size() - 1);
  using Partial = Plain<typename Source::Value>;
  const From<Partial> partials = {partial<Op, Source>(inputs.first(half), at, count, left),
                                  partial<Op, Source>(inputs.subspan(half), at, count, right)};
  combine<2, Op, Partial, Result>(partials, outs, count, finish);
}

// Elements of `out` before the first that begins a line; 0 when none does.
template <class T>
std::size_t elements_before_line(const T* out) {
  const std::size_t bytes = (0 - reinterpret_cast<std::uintptr_t>(out)) % kLineBytes;
  return bytes % sizeof(T) == 0 ? bytes / sizeof(T) : 0;
}

template <class Op, class Format, class Finish>
void reduce_blocks(Inputs inputs, Outputs outs, std::size_t count, Finish finish) {
  using T = typename Format::Stored;
  const std::size_t block = inputs.size() <= kFanIn<Op, Format> ? count : kBlockBytes / sizeof(typename Format::Value);
  // A shorter first block lets the others begin where lines do.
  const std::size_t unaligned =
      outs.stores == Stores::kStreaming ? elements_before_line(elements<T>(outs.spans[0]) + outs.first) : 0;
  for (std::size_t done = 0; done < count;) {
    const std::size_t next = HWY_MIN(done < unaligned ? unaligned - done : block, count - done);
    tree<Op, Format, Format>(inputs, outs.first, next, outs, finish);
    outs.first += next;
    done += next;
  }
}

template <class Format>
void reduce_format(Reduction reduction, Inputs inputs, const Outputs& outs, std::size_t count) {
  switch (reduction.op) {
    case ReduceOp::kSum:
      if constexpr (std::is_floating_point_v<typename Format::Value>) {
        if (reduction.divisor != 1.0) {
          return reduce_blocks<Sum, Format>(inputs, outs, count, Divide<Format>(reduction.divisor));
        }
      }
      return reduce_blocks<Sum, Format>(inputs, outs, count, Keep());
    case ReduceOp::kMin:
      return reduce_blocks<Min, Format>(inputs, outs, count, Keep());
    case ReduceOp::kMax:
      return reduce_blocks<Max, Format>(inputs, outs, count, Keep());
  }
}

// Vectors of signed integers wrap: Highway adds them as the processor does, without C++'s rule on overflow.
void reduce_any(Reduction reduction, DType dtype, Inputs inputs, std::span<const std::span<std::byte>> outs,
                Range range, Stores stores) {
  const auto as = [&]<class Format>(Format) {
    constexpr std::size_t kBytes = sizeof(typename Format::Stored);
    reduce_format<Format>(reduction, inputs, {outs, range.begin / kBytes, stores}, range.size() / kBytes);
  };
  switch (dtype) {
    case DType::kUint8:
      return as(Plain<std::uint8_t>());
    case DType::kInt8:
      return as(Plain<std::int8_t>());
    case DType::kInt16:
      return as(Plain<std::int16_t>());
    case DType::kInt32:
      return as(Plain<std::int32_t>());
    case DType::kInt64:
      return as(Plain<std::int64_t>());
    case DType::kFloat16:
      return as(Float16());
    case DType::kBFloat16:
      return as(BFloat16());
    case DType::kFloat32:
      return as(Plain<float>());
    case DType::kFloat64:
      return as(Plain<double>());
    case DType::kBool:
    case DType::kComplex64:
    case DType::kComplex128:
      return;  // made of others
  }
}

}  // namespace brigade::comm::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace brigade::comm {

HWY_EXPORT(reduce_any);

void reduce_vectorised(Reduction reduction, DType dtype, std::span<const std::span<const std::byte>> inputs,
                       std::span<const std::span<std::byte>> outs, Range range, Stores stores) noexcept {
  HWY_DYNAMIC_DISPATCH(reduce_any)(reduction, dtype, inputs, outs, range, stores);
}

}  // namespace brigade::comm
#endif
