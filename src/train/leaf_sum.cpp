#include "brigade/train/leaf_sum.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include "brigade/base/error.h"
#include "brigade/lax/collectives.h"
#include "brigade/runtime/axis.h"
#include "brigade/train/leaf.h"
#include "leaf_turns.h"
#include "memory.h"

namespace brigade::training {
namespace {

void require_plain(const std::vector<at::Tensor>& values, const LeafSumOptions& options, std::source_location site) {
  for (const at::Tensor& value : values) {
    const bool is_plain = value.defined() && value.device().is_cpu() && value.is_contiguous() &&
                          !value.requires_grad() &&
                          (value.scalar_type() == at::kFloat || value.scalar_type() == at::kDouble);
    if (is_plain) continue;
    throw InvalidArgument(
        fmt::format("\"{}\" over leaves takes contiguous float32 or float64 tensors on the CPU without a graph",
                    options.tag),
        {.site = site});
  }
}

// The devices of a pmap, each of them one leaf; groups are of neighbours.
comm::Group& group_of_body(std::int64_t group, std::source_location site) {
  const AxisPlace place = place_of_body(site);
  if (group <= 0 || group >= place.size()) return place.group();
  std::vector<int> ranks;
  const std::int64_t first = place.rank() / group * group;
  for (std::int64_t rank = first; rank < std::min<std::int64_t>(first + group, place.size()); ++rank)
    ranks.push_back(static_cast<int>(rank));
  return place.axis->among(place.position, place.group(), ranks);
}

}  // namespace

std::vector<at::Tensor> leaf_sum(const std::vector<at::Tensor>& values, LeafSumOptions options,
                                 std::source_location site) {
  require_plain(values, options, site);
  if (LeafTurns* turns = LeafTurns::current()) return turns->sum(leaf_index(), values, options, site);
  std::vector<at::Tensor> sums;
  for (const at::Tensor& value : values) sums.push_back(value.clone());
  if (!inside_body()) return sums;
  std::vector<comm::Piece> pieces;
  for (const at::Tensor& sum : sums) {
    pieces.push_back({.dtype = dtype_of(sum.scalar_type()),
                      .in = bytes_of(sum),
                      .out = bytes_of(sum),
                      .shape = {sum.sizes().data(), sum.sizes().size()}});
  }
  group_of_body(options.group, site).all_reduce({}, pieces, {.tag = options.tag, .site = site});
  return sums;
}

std::int64_t leaf_count() {
  if (const LeafTurns* turns = LeafTurns::current()) return turns->leaves();
  return inside_body() ? place_of_body(std::source_location::current()).size() : 1;
}

}  // namespace brigade::training
