#include "brigade/random/permutation.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "brigade/base/error.h"
#include "random/fill.h"
#include "random/kernels.h"

namespace brigade::random {
namespace {

constexpr std::int64_t kMostElements = std::int64_t{1} << 32;

struct Entry {
  std::uint32_t sort_key;
  std::uint32_t value;
};

// Three times as many sort bits as it takes to number the elements, which leaves a chance of about 1 / n that two of
// them tie in every round. The rule of TensorFlow's random_ops.cc, which JAX follows.
int rounds_for(std::int64_t n) {
  const double bits_per_round = std::log(static_cast<double>(std::numeric_limits<std::uint32_t>::max()));
  return static_cast<int>(
      std::ceil(3.0 * std::log(static_cast<double>(std::max<std::int64_t>(1, n))) / bits_per_round));
}

// Stable, by `sort_key`: counting sort on 11 bits at a time, the lowest first.
void radix_sort(std::vector<Entry>& entries, std::vector<Entry>& other) {
  constexpr int kDigitBits = 11;
  constexpr std::uint32_t kDigits = 1 << kDigitBits;
  for (int shift = 0; shift < 32; shift += kDigitBits) {
    std::array<std::size_t, kDigits> starts{};
    const auto digit = [shift](const Entry& entry) { return (entry.sort_key >> shift) % kDigits; };
    for (const Entry& entry : entries) ++starts[digit(entry)];
    std::size_t sum = 0;
    for (std::size_t& start : starts) sum += std::exchange(start, sum);
    for (const Entry& entry : entries) other[starts[digit(entry)]++] = entry;
    entries.swap(other);
  }
}

}  // namespace

at::Tensor permutation(Key key, std::int64_t n) {
  if (n < 0 || n > kMostElements) {
    throw InvalidArgument(fmt::format("random::permutation: cannot order {} elements; give 0 to {}", n, kMostElements));
  }
  const auto size = static_cast<std::size_t>(n);
  std::vector<Entry> entries(size);
  std::vector<Entry> other(size);
  std::vector<std::uint32_t> sort_keys(size);
  for (std::size_t i = 0; i < size; ++i) entries[i].value = static_cast<std::uint32_t>(i);
  for (int round = rounds_for(n); round > 0; --round) {
    const auto [next, sub] = split<2>(key);
    key = next;
    for_each_chunk(n, [&, sub_key = sub](std::int64_t begin, std::int64_t end) {
      kernels::bits(
          sub_key, static_cast<std::uint64_t>(begin),
          std::span(sort_keys).subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin)));
    });
    for (std::size_t i = 0; i < size; ++i) entries[i].sort_key = sort_keys[i];
    radix_sort(entries, other);
  }
  at::Tensor order = at::empty({n}, at::TensorOptions(at::kCPU).dtype(at::kLong));
  auto* const out = order.data_ptr<std::int64_t>();
  for (std::size_t i = 0; i < size; ++i) out[i] = entries[i].value;
  return order;
}

at::Tensor permutation(Key key, const at::Tensor& x, std::int64_t dim) {
  if (!x.defined() || dim < -x.dim() || dim >= x.dim()) {
    throw ShapeError(x.defined() ? fmt::format("random::permutation: a tensor of shape [{}] has no axis {} to reorder",
                                               fmt::join(x.sizes().vec(), ", "), dim)
                                 : "random::permutation: the tensor is undefined; give one with an axis to reorder");
  }
  return x.index_select(dim, permutation(key, x.size(dim)).to(x.device()));
}

}  // namespace brigade::random
