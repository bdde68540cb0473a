// Element-wise reductions on vectors, compiled once per instruction set and chosen at run time.
//
// The bits do not depend on the instruction set: no fused or reassociated arithmetic, comparisons and selections
// instead of the processors' differing min and max, one NaN for all results, and tails that run the same code on a
// padded vector.
#include "comm/reduce_kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "comm/reduce_kernels.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

HWY_BEFORE_NAMESPACE();
namespace brigade::comm::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Inputs that are combined in registers, without a partial sum in memory.
constexpr std::size_t kFanIn = 4;

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

// What happens to a combined vector before it is stored.
struct KeepPartial {
  template <class D, class V>
  HWY_INLINE V operator()(D, V v) const {
    return v;
  }
};

// Which operand's NaN an addition passes on is up to processor and compiler, so results hold one NaN.
struct FinishResult {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V v) const {
    using T = hn::TFromD<D>;
    if constexpr (std::is_floating_point_v<T>) {
      return hn::IfThenElse(hn::IsNaN(v), hn::Set(d, std::numeric_limits<T>::quiet_NaN()), v);
    } else {
      return v;
    }
  }
};

template <class T>
struct DivideResult {
  T divisor;

  template <class D, class V>
  HWY_INLINE V operator()(D d, V v) const {
    return FinishResult()(d, hn::Div(v, hn::Set(d, divisor)));
  }
};

// T(0, N) of one vector of each input, N <= kFanIn.
template <std::size_t N, class D, class Op>
HWY_INLINE hn::Vec<D> tree_of_vectors(D d, Op op, const std::array<const hn::TFromD<D>*, kFanIn>& in, std::size_t at) {
  const auto first = hn::LoadU(d, in[0] + at);
  if constexpr (N == 1) {
    return first;
  } else {
    const auto pair = op(d, first, hn::LoadU(d, in[1] + at));
    if constexpr (N == 2) {
      return pair;
    } else {
      const auto third = hn::LoadU(d, in[2] + at);
      if constexpr (N == 3) {
        return op(d, pair, third);
      } else {
        return op(d, pair, op(d, third, hn::LoadU(d, in[3] + at)));
      }
    }
  }
}

// out[0..count) = finish(T(0, N)) of the inputs' first `count` elements.
template <std::size_t N, class Op, class Finish, class T>
HWY_NOINLINE void combine(const std::array<const T*, kFanIn>& in, T* out, std::size_t count, Finish finish) {
  const hn::ScalableTag<T> d;
  const std::size_t lanes = hn::Lanes(d);
  std::size_t at = 0;
  for (; at + lanes <= count; at += lanes) hn::StoreU(finish(d, tree_of_vectors<N>(d, Op(), in, at)), d, out + at);
  if (at == count) return;

  HWY_ALIGN T padded[kFanIn][hn::MaxLanes(d)] = {};
  std::array<const T*, kFanIn> tail = {};
  const std::size_t bytes = (count - at) * sizeof(T);
  for (std::size_t i = 0; i < N; ++i) {
    std::memcpy(padded[i], in[i] + at, bytes);
    tail[i] = padded[i];
  }
  hn::StoreU(finish(d, tree_of_vectors<N>(d, Op(), tail, 0)), d, padded[0]);
  std::memcpy(out + at, padded[0], bytes);
}

using Inputs = std::span<const std::span<const std::byte>>;

template <class T>
const T* elements(std::span<const std::byte> bytes) {
  return reinterpret_cast<const T*>(bytes.data());
}

// finish(T(0, P)) of `count` elements from element `at` on, into `out`, which no partial sum touches: it may be an
// input.
template <class Op, class T, class Finish>
void tree(Inputs inputs, std::size_t at, std::size_t count, T* out, Finish finish) {
  if (inputs.size() <= kFanIn) {
    std::array<const T*, kFanIn> in = {};
    for (std::size_t i = 0; i < inputs.size(); ++i) in[i] = elements<T>(inputs[i]) + at;
    switch (inputs.size()) {
      case 1:
        return combine<1, Op>(in, out, count, finish);
      case 2:
        return combine<2, Op>(in, out, count, finish);
      case 3:
        return combine<3, Op>(in, out, count, finish);
      default:
        return combine<4, Op>(in, out, count, finish);
    }
  }
  HWY_ALIGN T left[kBlockBytes / sizeof(T)];
  HWY_ALIGN T right[kBlockBytes / sizeof(T)];
  const std::size_t half = std::bit_floor(inputs.size() - 1);
  tree<Op>(inputs.first(half), at, count, left, KeepPartial());
  tree<Op>(inputs.subspan(half), at, count, right, KeepPartial());
  combine<2, Op>(std::array<const T*, kFanIn>{left, right}, out, count, finish);
}

template <class Op, class T, class Finish>
void reduce_blocks(Inputs inputs, std::span<std::byte> out, Finish finish) {
  const std::size_t count = out.size() / sizeof(T);
  const std::size_t block = inputs.size() <= kFanIn ? count : kBlockBytes / sizeof(T);
  for (std::size_t at = 0; at < count; at += block) {
    tree<Op>(inputs, at, HWY_MIN(block, count - at), reinterpret_cast<T*>(out.data()) + at, finish);
  }
}

template <class Op, class T>
void reduce_with(double divisor, Inputs inputs, std::span<std::byte> out) {
  if constexpr (std::is_floating_point_v<T>) {
    if (divisor != 1.0) return reduce_blocks<Op, T>(inputs, out, DivideResult<T>{static_cast<T>(divisor)});
  }
  reduce_blocks<Op, T>(inputs, out, FinishResult());
}

template <class T>
void reduce_typed(Reduction reduction, Inputs inputs, std::span<std::byte> out) {
  switch (reduction.op) {
    case ReduceOp::kSum:
      return reduce_with<Sum, T>(reduction.divisor, inputs, out);
    case ReduceOp::kMin:
      return reduce_with<Min, T>(reduction.divisor, inputs, out);
    case ReduceOp::kMax:
      return reduce_with<Max, T>(reduction.divisor, inputs, out);
  }
}

// Vectors of signed integers wrap: Highway adds them as the processor does, without C++'s rule on overflow.
void reduce_any(Reduction reduction, DType dtype, Inputs inputs, std::span<std::byte> out) {
  switch (dtype) {
    case DType::kFloat32:
      return reduce_typed<float>(reduction, inputs, out);
    case DType::kFloat64:
      return reduce_typed<double>(reduction, inputs, out);
    case DType::kInt32:
      return reduce_typed<std::int32_t>(reduction, inputs, out);
    case DType::kInt64:
      return reduce_typed<std::int64_t>(reduction, inputs, out);
    default:
      return;
  }
}

}  // namespace brigade::comm::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace brigade::comm {

HWY_EXPORT(reduce_any);

void reduce_vectorised(Reduction reduction, DType dtype, std::span<const std::span<const std::byte>> inputs,
                       std::span<std::byte> out) noexcept {
  HWY_DYNAMIC_DISPATCH(reduce_any)(reduction, dtype, inputs, out);
}

}  // namespace brigade::comm
#endif
