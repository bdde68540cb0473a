// all_to_all, ppermute, pshuffle and pbroadcast.
#include "brigade/lax/exchange.h"

#include <ATen/ATen.h>
#include <c10/util/SmallVector.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

#include "brigade/base/error.h"
#include "layout.h"
#include "linear_node.h"
#include "reducer.h"

namespace brigade::lax::detail {
namespace {

void require_rank(const Invocation& call, int rank, std::string_view role) {
  if (rank < 0 || rank >= call.size()) {
    throw InvalidArgument(
        fmt::format("{}: the {} {} is no rank, which are 0 to {}", call.name, role, rank, call.size() - 1),
        call.context());
  }
}

void require_distinct(const Invocation& call, const RankPairs& pairs, int comm::RankPair::*end, std::string_view role) {
  c10::SmallVector<bool, 64> seen(static_cast<std::size_t>(call.size()), false);
  for (const comm::RankPair& pair : pairs) {
    require_rank(call, pair.*end, role);
    if (std::exchange(seen[static_cast<std::size_t>(pair.*end)], true)) {
      throw InvalidArgument(fmt::format("{}: {} is the {} of two pairs", call.name, pair.*end, role), call.context());
    }
  }
}

// As tags show it: empty for the default.
std::string described(Layout split, Layout concat) {
  if (split.dim == 0 && concat.dim == 0) return described(split);
  return fmt::format("split {}, concat {}{}", split.dim, concat.dim, split.tiled ? ", tiled" : "");
}

// The transpose of pbroadcast: the sum at `source`, zero elsewhere.
Tensors sum_at(const Invocation& call, const Tensors& tensors, int source) {
  const bool recorded = needs_recording(tensors);
  Tensors results = all_reduce(call, {}, tensors, call.tag(recorded), type_of_sum);
  if (call.place.rank() != source) {
    for (at::Tensor& result : results) result.zero_();
  }
  if (recorded) {
    record_linear(call, tensors, results,
                  [call, source](const Tensors& cotangents) { return pbroadcast(call, cotangents, source); });
  }
  return results;
}

}  // namespace

Tensors all_to_all(const Invocation& call, const Tensors& tensors, Layout split, Layout concat) {
  const bool recorded = needs_recording(tensors);
  std::vector<std::int64_t> dims;
  Tensors inputs;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const std::int64_t dim = scattered_dim(call, tensors[i], split, i);
    inputs.push_back(to_blocks(plain(call, tensors[i]), dim, call.size(), split.tiled));
    dims.push_back(checked_dim(call, tensors[i], concat, tensors[i].dim(), i));
  }
  Tensors results = move(call, {.operation = comm::Operation::kAllToAll}, inputs, tensors,
                         call.tag(recorded, described(split, concat)));
  for (std::size_t i = 0; i < results.size(); ++i) results[i] = from_blocks(results[i], dims[i], concat.tiled);
  if (recorded) {
    record_linear(call, tensors, results, [call = call.in_backward(), split, concat](const Tensors& cotangents) {
      return all_to_all(call, cotangents, concat, split);
    });
  }
  return results;
}

Tensors ppermute(const Invocation& call, const Tensors& tensors, const RankPairs& pairs) {
  require_distinct(call, pairs, &comm::RankPair::first, "source");
  require_distinct(call, pairs, &comm::RankPair::second, "destination");
  const bool recorded = needs_recording(tensors);
  Tensors results = move(call, {.operation = comm::Operation::kPermute, .pairs = pairs}, plain(call, tensors), tensors,
                         call.tag(recorded));
  if (recorded) {
    RankPairs inverse;
    for (const auto& [source, destination] : pairs) inverse.emplace_back(destination, source);
    record_linear(call, tensors, results, [call = call.in_backward(), inverse](const Tensors& cotangents) {
      return ppermute(call, cotangents, inverse);
    });
  }
  return results;
}

Tensors pshuffle(const Invocation& call, const Tensors& tensors, const std::vector<int>& perm) {
  if (static_cast<int>(perm.size()) != call.size()) {
    throw InvalidArgument(
        fmt::format("pshuffle by [{}], which has {} entries for {} devices: it names each one's source",
                    fmt::join(perm, ", "), perm.size(), call.size()),
        call.context());
  }
  RankPairs pairs;
  for (const int source : perm) pairs.emplace_back(source, static_cast<int>(pairs.size()));
  return ppermute(call, tensors, pairs);
}

Tensors pbroadcast(const Invocation& call, const Tensors& tensors, int source) {
  require_rank(call, source, "source");
  const bool recorded = needs_recording(tensors);
  Tensors results = move(call, {.operation = comm::Operation::kBroadcast, .root = source}, plain(call, tensors),
                         tensors, call.tag(recorded));
  if (recorded) {
    record_linear(call, tensors, results, [call = call.in_backward(), source](const Tensors& cotangents) {
      return sum_at(call, cotangents, source);
    });
  }
  return results;
}

}  // namespace brigade::lax::detail
