// New tensors filled by a kernel, and the checks that all draws share.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>

namespace brigade::random {

// Errors call the function by this name: "normal" for random::normal.
void check_shape(std::string_view function, at::IntArrayRef shape);
void check_floating(std::string_view function, at::ScalarType dtype);  // kFloat or kDouble

// work(begin, end) for ranges that cover [0, count), on the calling thread's intra-op threads when there is enough to
// do.
void for_each_chunk(std::int64_t count, const std::function<void(std::int64_t begin, std::int64_t end)>& work);

// A new tensor of `shape`; kernel(first, out) writes the elements from `first` on into the span `out`. Word is the type
// that the kernel writes, of the size of `dtype`.
template <class Word, class Kernel>
at::Tensor filled(std::string_view function, at::IntArrayRef shape, at::ScalarType dtype, const Kernel& kernel) {
  check_shape(function, shape);
  at::Tensor out = at::empty(shape, at::TensorOptions(at::kCPU).dtype(dtype));
  auto* const data = static_cast<Word*>(out.data_ptr());
  for_each_chunk(out.numel(), [&](std::int64_t begin, std::int64_t end) {
    kernel(static_cast<std::uint64_t>(begin), std::span<Word>(data + begin, static_cast<std::size_t>(end - begin)));
  });
  return out;
}

// The same for a floating dtype: `kernel` takes spans of float and of double.
template <class Kernel>
at::Tensor filled_floating(std::string_view function, at::IntArrayRef shape, at::ScalarType dtype,
                           const Kernel& kernel) {
  check_floating(function, dtype);
  return dtype == at::kFloat ? filled<float>(function, shape, dtype, kernel)
                             : filled<double>(function, shape, dtype, kernel);
}

}  // namespace brigade::random
