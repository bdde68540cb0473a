// psum, pmean, pmax and pmin.
#include <ATen/ATen.h>
#include <fmt/format.h>

#include <optional>

#include "brigade/base/error.h"
#include "brigade/lax/collectives.h"
#include "linear_node.h"
#include "transport.h"

namespace brigade::lax {

std::int64_t axis_index(std::string_view axis, Site site) { return find_axis(axis, site).position; }

std::int64_t axis_size(std::string_view axis, Site site) { return find_axis(axis, site).axis->size(); }

namespace detail {
namespace {

using comm::ReduceOp;

// What travels for `tensor`: plain, of a dtype that the kernels take (or `as`, if given), complex numbers as pairs of real ones.
at::Tensor reducible(const at::Tensor& tensor, const char* name, comm::Reduction reduction,
                     std::optional<at::ScalarType> as, const AxisPlace& place, Site site) {
  const at::Tensor data = plain(tensor, name, place, site);
  if (!data.is_complex()) {
    const at::ScalarType type = as.value_or(reduced_as(data.scalar_type()));
    return data.scalar_type() == type ? data : data.to(type);
  }
  if (reduction.op == ReduceOp::kSum) return at::view_as_real(data);
  throw InvalidArgument(fmt::format("{} of complex numbers, which have no order: reduce .abs() instead", name),
                        {.axis = place.axis->name(), .device = place.position, .site = site});
}

// Reduces all tensors in one meeting. Results are contiguous, have no graph, and are no views. They take the memory of
// tensors that nobody else holds, else their own.
Tensors reduce(const char* name, comm::Reduction reduction, const AxisPlace& place, const Tensors& tensors,
               std::string_view tag, Site site, std::optional<at::ScalarType> as = std::nullopt) {
  Tensors inputs, results;
  std::vector<comm::Piece> pieces;
  inputs.reserve(tensors.size());
  results.reserve(tensors.size());
  pieces.reserve(tensors.size());
  for (const at::Tensor& tensor : tensors) {
    const bool alone = is_ours_alone(tensor);
    const at::Tensor& in = inputs.emplace_back(reducible(tensor, name, reduction, as, place, site));
    const bool reuse = alone && tensor.numel() > 0 && in.data_ptr() == tensor.data_ptr();
    const at::Tensor& like = tensor.is_complex() ? tensor : in;
    results.push_back(reuse ? tensor : at::empty(like.sizes(), like.options()));
    pieces.push_back(piece(in, tensor.is_complex() ? at::view_as_real(results.back()) : results.back(), tensor));
  }
  // Before the first byte changes: whoever lent a tensor to the body can tell that its values are gone.
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (results[i].is_same(tensors[i]) && !tensors[i].is_inference()) tensors[i].unsafeGetTensorImpl()->bump_version();
  }
  place.group().all_reduce(reduction, pieces, {.tag = tag, .site = site});
  return results;
}

// Devices of which only some differentiate would not meet in backward, so the tag tells them apart.
std::string_view tag_of(const char* plain_tag, const char* recorded_tag, bool recorded) {
  return recorded ? recorded_tag : plain_tag;
}

// Back from the dtype of the reduction. A sum of bools counts, so it stays int32.
at::Tensor narrowed(const at::Tensor& result, at::ScalarType original, ReduceOp op) {
  if (original == at::kBool && op == ReduceOp::kSum) return result;
  return result.scalar_type() == original ? result : result.to(original);
}

Tensors extreme(const char* name, ReduceOp op, const AxisPlace& place, const Tensors& tensors, Site site) {
  Tensors results = reduce(name, {.op = op}, place, tensors, name, site);
  for (std::size_t i = 0; i < results.size(); ++i) results[i] = narrowed(results[i], tensors[i].scalar_type(), op);
  if (needs_recording(tensors)) {
    record_linear(name, tensors, results, [name, place, site](Tensors) -> Tensors {
      throw InvalidArgument(fmt::format("{} has no gradient: detach its argument, or use psum or pmean", name),
                            {.axis = place.axis->name(), .device = place.position, .site = site});
    });
  }
  return results;
}

struct Split {
  std::vector<at::ScalarType> types;  // of all tensors, in order
  Tensors floating, integral;
};

Split split_by_kind(Tensors tensors) {
  Split split;
  for (at::Tensor& tensor : tensors) {
    const at::ScalarType type = split.types.emplace_back(tensor.scalar_type());
    if (at::isIntegralType(type, /*includeBool=*/true)) {
      split.integral.push_back(std::move(tensor));
    } else {
      split.floating.push_back(std::move(tensor));
    }
  }
  return split;
}

Tensors sum_tagged(const AxisPlace& place, const Tensors& tensors, std::string_view tag, Site site) {
  Tensors results = reduce("psum", {.op = ReduceOp::kSum}, place, tensors, tag, site);
  for (std::size_t i = 0; i < results.size(); ++i)
    results[i] = narrowed(results[i], tensors[i].scalar_type(), ReduceOp::kSum);
  if (needs_recording(tensors)) {
    record_linear("psum", tensors, results, [place, site](const Tensors& cotangents) {
      return sum_tagged(place, cotangents, "psum in backward", site);
    });
  }
  return results;
}

Tensors mean_tagged(const AxisPlace& place, Tensors tensors, std::string_view tag, Site site) {
  const auto count = static_cast<double>(place.axis->size());
  const bool recorded = needs_recording(tensors);
  const Tensors originals =
      recorded ? tensors : Tensors();  // a second handle would keep their memory from being reused
  const Split split = split_by_kind(std::move(tensors));
  // Floating sums are divided where they are reduced; integers only after the exact sum, so a mixed tree takes two meetings.
  Tensors means, sums;
  if (!split.floating.empty()) {
    means = reduce("pmean", {.op = ReduceOp::kSum, .divisor = count}, place, split.floating, tag, site);
  }
  // As int64, which no number of devices overflows but for int64 itself.
  if (!split.integral.empty()) {
    sums = reduce("pmean", {.op = ReduceOp::kSum}, place, split.integral, tag, site, at::kLong);
  }

  Tensors results;
  auto next_mean = means.begin(), next_sum = sums.begin();
  for (const at::ScalarType type : split.types) {
    const bool integer = at::isIntegralType(type, /*includeBool=*/true);
    results.push_back(integer ? (next_sum++)->to(at::kDouble).div_(count).to(at::kFloat)
                              : narrowed(*next_mean++, type, ReduceOp::kSum));
  }
  if (recorded) {
    record_linear("pmean", originals, results, [place, site](Tensors cotangents) {
      return mean_tagged(place, std::move(cotangents), "pmean in backward", site);
    });
  }
  return results;
}

}  // namespace

Tensors psum(const AxisPlace& place, Tensors tensors, Site site) {
  return sum_tagged(place, tensors, tag_of("psum", "psum of what requires grad", needs_recording(tensors)), site);
}

Tensors pmean(const AxisPlace& place, Tensors tensors, Site site) {
  const std::string_view tag = tag_of("pmean", "pmean of what requires grad", needs_recording(tensors));
  return mean_tagged(place, std::move(tensors), tag, site);
}

Tensors pmax(const AxisPlace& place, Tensors tensors, Site site) {
  return extreme("pmax", ReduceOp::kMax, place, tensors, site);
}

Tensors pmin(const AxisPlace& place, Tensors tensors, Site site) {
  return extreme("pmin", ReduceOp::kMin, place, tensors, site);
}

}  // namespace detail
}  // namespace brigade::lax
