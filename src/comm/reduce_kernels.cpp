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

#include "brigade/base/quotient.h"
#include "comm/formats-inl.h"

HWY_BEFORE_NAMESPACE();
namespace brigade::comm::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Two blocks of partial sums per level of the tree and the inputs' blocks fit in a first-level cache.
constexpr std::size_t kBlockBytes = 2048;

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

using Inputs = const Addends&;

template <class T>
const T* elements(std::span<const std::byte> bytes) {
  return reinterpret_cast<const T*>(bytes.data());
}

template <class T>
T* elements(std::span<std::byte> bytes) {
  return reinterpret_cast<T*>(bytes.data());
}

// Where the inputs' elements from `at` on lie.
template <std::size_t N, class Format>
std::array<const typename Format::Stored*, N> all_of(Inputs inputs, std::size_t at) {
  std::array<const typename Format::Stored*, N> in;
  for (std::size_t i = 0; i < N; ++i) in[i] = elements<typename Format::Stored>(inputs[i]) + at;
  return in;
}

using Outputs = ReduceTask::Outputs;

template <std::size_t N, class Format>
using From = std::array<const typename Format::Stored*, N>;

// T(0, N) of one vector of each input.
template <std::size_t N, class Format, class D, class Op>
HWY_INLINE hn::Vec<D> tree_of_vectors(D d, Op op, const From<N, Format>& in, std::size_t at) {
  const hn::Rebind<typename Format::Stored, D> stored;
  const auto load = [&](std::size_t i) HWY_ATTR { return Format::decode(d, hn::LoadU(stored, in[i] + at)); };
  static_assert(N == 1 || N == 2 || N == 4);
  if constexpr (N == 1) return load(0);
  if constexpr (N == 2) return op(d, load(0), load(1));
  if constexpr (N == 4) return op(d, op(d, load(0), load(1)), op(d, load(2), load(3)));
}

// Stores vectors that follow each other to every output, from its element `at` on.
template <class D, class... V>
HWY_INLINE void store(D d, const Outputs& outs, std::size_t at, V... vectors) {
  using T = hn::TFromD<D>;
  for (const std::span<std::byte> span : outs.spans) {
    T* out = elements<T>(span) + at;
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

// finish(T(0, N)) of the inputs' first `count` elements, to the outputs' elements from `to` on.
template <std::size_t N, class Op, class Source, class Result, class Finish>
HWY_NOINLINE void combine(const From<N, Source>& in, const Outputs& outs, std::size_t to, std::size_t count,
                          Finish finish) {
  const hn::ScalableTag<typename Source::Value> d;
  const hn::Rebind<typename Result::Stored, decltype(d)> stored;
  const std::size_t lanes = hn::Lanes(d);
  const auto result = [&](const From<N, Source>& from, std::size_t at) HWY_ATTR {
    return Result::encode(d, finish(d, tree_of_vectors<N, Source>(d, Op(), from, at)));
  };

  std::size_t at = 0;
  if constexpr (kIsPlain<Source> && kIsPlain<Result>) {
    for (; at + 4 * lanes <= count; at += 4 * lanes) {
      store(stored, outs, to + at, result(in, at), result(in, at + lanes), result(in, at + 2 * lanes),
            result(in, at + 3 * lanes));
    }
  }
  for (; at + lanes <= count; at += lanes) store(stored, outs, to + at, result(in, at));
  if (at == count) return;

  // The last elements fill a vector of their own.
  HWY_ALIGN typename Source::Stored padded[N][hn::MaxLanes(d)] = {};
  HWY_ALIGN typename Result::Stored last[hn::MaxLanes(stored)];
  From<N, Source> from = {};
  for (std::size_t i = 0; i < N; ++i) {
    std::memcpy(padded[i], in[i] + at, (count - at) * sizeof padded[0][0]);
    from[i] = padded[i];
  }
  hn::StoreU(result(from, 0), stored, last);
  for (const std::span<std::byte> span : outs.spans) {
    std::memcpy(elements<typename Result::Stored>(span) + to + at, last, (count - at) * sizeof last[0]);
  }
}

// Whether there is a kernel for so many inputs, which needs no partial result in memory. Sums of four floats are common, and
// long enough, to be worth one; every kernel takes its time to compile.
template <class Op, class Format>
constexpr bool takes_at_once(std::size_t inputs) {
  constexpr bool kIsSum = std::is_same_v<Op, Sum>;
  if (inputs == 2) return kIsSum || kIsPlain<Format>;
  return inputs == 4 && kIsSum && kIsPlain<Format> && std::is_floating_point_v<typename Format::Value>;
}

// T(0, P) of at most a block from element `at` on, where it lies already or in `memory`.
template <class Op, class Format>
const typename Format::Value* partial(Inputs inputs, std::size_t at, std::size_t count, std::span<std::byte> memory) {
  using Value = typename Format::Value;
  using Partial = Plain<Value>;
  const Outputs out = {.spans = {&memory, 1}, .stores = Stores::kCached};
  if (inputs.size() == 1) {
    if constexpr (kIsPlain<Format>) return elements<Value>(inputs[0]) + at;
    combine<1, Sum, Format, Partial>(all_of<1, Format>(inputs, at), out, 0, count, Keep());
    return elements<Value>(memory);
  }
  if constexpr (takes_at_once<Op, Format>(2)) {
    if (inputs.size() == 2) {
      combine<2, Op, Format, Partial>(all_of<2, Format>(inputs, at), out, 0, count, Keep());
      return elements<Value>(memory);
    }
  }
  if constexpr (takes_at_once<Op, Format>(4)) {
    if (inputs.size() == 4 && inputs.left() == 2) {
      combine<4, Op, Format, Partial>(all_of<4, Format>(inputs, at), out, 0, count, Keep());
      return elements<Value>(memory);
    }
  }
  HWY_ALIGN std::array<std::byte, kBlockBytes> other;
  const std::size_t left = inputs.left();
  combine<2, Op, Partial, Partial>({partial<Op, Format>(inputs.first(left), at, count, memory),
                                    partial<Op, Format>(inputs.from(left), at, count, other)},
                                   out, 0, count, Keep());
  return elements<Value>(memory);
}

// finish(T(0, P)) of `count` elements from element `at` on. Outputs may be inputs: no partial result touches them.
template <class Op, class Format, class Finish>
void tree(Inputs inputs, std::size_t at, std::size_t count, const Outputs& outs, Finish finish) {
  using Partial = Plain<typename Format::Value>;
  HWY_ALIGN std::array<std::byte, kBlockBytes> memory;
  HWY_ALIGN std::array<std::byte, kBlockBytes> other;
  if constexpr (takes_at_once<Op, Format>(4)) {
    if (inputs.size() == 4 && inputs.left() == 2) {
      return combine<4, Op, Format, Format>(all_of<4, Format>(inputs, at), outs, at, count, finish);
    }
  }
  if constexpr (takes_at_once<Op, Format>(2)) {
    if (inputs.size() == 2) {
      return combine<2, Op, Format, Format>(all_of<2, Format>(inputs, at), outs, at, count, finish);
    }
    if (inputs.size() > 2) {
      const std::size_t left = inputs.left();
      return combine<2, Op, Partial, Format>({partial<Op, Format>(inputs.first(left), at, count, memory),
                                              partial<Op, Format>(inputs.from(left), at, count, other)},
                                             outs, at, count, finish);
    }
  }
  // All that is left to do is to divide, or to encode.
  combine<1, Sum, Partial, Format>({partial<Op, Format>(inputs, at, count, memory)}, outs, at, count, finish);
}

// Elements of `out` before the first that begins a line, as lines should not be streamed in parts; 0 when none does.
template <class T>
std::size_t elements_before_line(const T* out) {
  const std::size_t bytes = (0 - reinterpret_cast<std::uintptr_t>(out)) % kCacheLine;
  return bytes % sizeof(T) == 0 ? bytes / sizeof(T) : 0;
}

template <class Op, class Format, class Finish>
void reduce_blocks(Inputs inputs, const Outputs& outs, std::size_t at, std::size_t end, Finish finish) {
  const bool at_once = takes_at_once<Op, Format>(inputs.size()) && (inputs.size() == 2 || inputs.left() == 2);
  const bool in_blocks = !at_once && !(kIsPlain<Format> && inputs.size() == 1);
  const std::size_t block = in_blocks ? kBlockBytes / sizeof(typename Format::Value) : end - at;
  if (outs.stores == Stores::kStreaming) {
    // A shorter first block lets the others begin where lines do.
    const std::size_t unaligned = elements_before_line(elements<typename Format::Stored>(outs.spans[0]) + at);
    const std::size_t first = HWY_MIN(HWY_MIN(unaligned, block), end - at);
    if (first > 0) tree<Op, Format>(inputs, at, first, outs, finish);
    at += first;
  }
  for (; at < end; at += block) tree<Op, Format>(inputs, at, HWY_MIN(block, end - at), outs, finish);
}

template <class Format>
void reduce_format(const ReduceTask& task) {
  const std::size_t begin = task.range.begin / sizeof(typename Format::Stored);
  const std::size_t end = task.range.end / sizeof(typename Format::Stored);
  switch (task.reduction.op) {
    case ReduceOp::kSum:
      if constexpr (std::is_floating_point_v<typename Format::Value>) {
        if (task.reduction.divisor != 1.0) {
          const Divide<Format> divide(task.reduction.divisor);
          return reduce_blocks<Sum, Format>(task.inputs, task.outs, begin, end, divide);
        }
      }
      return reduce_blocks<Sum, Format>(task.inputs, task.outs, begin, end, Keep());
    case ReduceOp::kMin:
      return reduce_blocks<Min, Format>(task.inputs, task.outs, begin, end, Keep());
    case ReduceOp::kMax:
      return reduce_blocks<Max, Format>(task.inputs, task.outs, begin, end, Keep());
  }
}

// Vectors of signed integers wrap: Highway adds them as the processor does, without C++'s rule on overflow.
void reduce_any(const ReduceTask& task) {
  switch (task.dtype) {
    case DType::kUint8:
      return reduce_format<Plain<std::uint8_t>>(task);
    case DType::kInt8:
      return reduce_format<Plain<std::int8_t>>(task);
    case DType::kInt16:
      return reduce_format<Plain<std::int16_t>>(task);
    case DType::kInt32:
      return reduce_format<Plain<std::int32_t>>(task);
    case DType::kInt64:
      return reduce_format<Plain<std::int64_t>>(task);
    case DType::kFloat16:
      return reduce_format<Float16>(task);
    case DType::kBFloat16:
      return reduce_format<BFloat16>(task);
    case DType::kFloat32:
      return reduce_format<Plain<float>>(task);
    case DType::kFloat64:
      return reduce_format<Plain<double>>(task);
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

void reduce_vectorised(const ReduceTask& task) noexcept { HWY_DYNAMIC_DISPATCH(reduce_any)(task); }

}  // namespace brigade::comm
#endif
