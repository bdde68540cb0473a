// psum, pmean, pmax and pmin.
#include <ATen/ATen.h>
#include <fmt/format.h>

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

// Reduces all tensors in one meeting. Results are fresh, contiguous, and have no graph.
Tensors reduce(const char* name, comm::Reduction reduction, const AxisPlace& place, const Tensors& tensors, Site site) {
  Tensors inputs, results;
  std::vector<comm::Piece> pieces;
  inputs.reserve(tensors.size());
  results.reserve(tensors.size());
  pieces.reserve(tensors.size());
  for (const at::Tensor& tensor : tensors) {
    at::Tensor in = plain(tensor, name, place, site);
    if (in.is_complex()) {
      if (reduction.op != ReduceOp::kSum) {
        throw InvalidArgument(fmt::format("{} of complex numbers, which have no order: reduce .abs() instead", name),
                              {.axis = place.axis->name(), .device = place.position, .site = site});
      }
      in = at::view_as_real(in);
    }
    inputs.push_back(in.to(reduced_as(in.scalar_type())));
    results.push_back(at::empty_like(inputs.back()));
    pieces.push_back(piece(inputs.back(), results.back()));
  }
  place.group().all_reduce(reduction, pieces, {.tag = name, .site = site});
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (tensors[i].is_complex()) results[i] = at::view_as_complex(results[i]);
  }
  return results;
}

// Back from the dtype of the reduction. A sum of bools counts, so it stays int32.
at::Tensor narrowed(const at::Tensor& result, const at::Tensor& original, ReduceOp op) {
  if (original.scalar_type() == at::kBool && op == ReduceOp::kSum) return result;
  return result.to(original.scalar_type());
}

Tensors extreme(const char* name, ReduceOp op, const AxisPlace& place, const Tensors& tensors, Site site) {
  Tensors results = reduce(name, {.op = op}, place, tensors, site);
  for (std::size_t i = 0; i < results.size(); ++i) results[i] = narrowed(results[i], tensors[i], op);
  if (needs_recording(tensors)) {
    record_linear(name, tensors, results, [name, place, site](Tensors) -> Tensors {
      throw InvalidArgument(fmt::format("{} has no gradient: detach its argument, or use psum or pmean", name),
                            {.axis = place.axis->name(), .device = place.position, .site = site});
    });
  }
  return results;
}

}  // namespace

Tensors psum(const AxisPlace& place, Tensors tensors, Site site) {
  Tensors results = reduce("psum", {.op = ReduceOp::kSum}, place, tensors, site);
  for (std::size_t i = 0; i < results.size(); ++i) results[i] = narrowed(results[i], tensors[i], ReduceOp::kSum);
  if (needs_recording(tensors)) {
    record_linear("psum", tensors, results,
                  [place, site](Tensors cotangents) { return psum(place, std::move(cotangents), site); });
  }
  return results;
}

Tensors pmean(const AxisPlace& place, Tensors tensors, Site site) {
  // The reduction divides floating sums itself. Integers are summed exactly first, so a mixed tree takes two meetings.
  Tensors floating, integral;
  for (const at::Tensor& tensor : tensors) {
    (tensor.is_floating_point() || tensor.is_complex() ? floating : integral).push_back(tensor);
  }
  const auto count = static_cast<double>(place.axis->size());
  Tensors means, sums;
  if (!floating.empty()) means = reduce("pmean", {.op = ReduceOp::kSum, .divisor = count}, place, floating, site);
  if (!integral.empty()) sums = reduce("pmean", {.op = ReduceOp::kSum}, place, integral, site);

  Tensors results;
  std::size_t next_mean = 0, next_sum = 0;
  for (const at::Tensor& tensor : tensors) {
    if (tensor.is_floating_point() || tensor.is_complex()) {
      results.push_back(means[next_mean++].to(tensor.scalar_type()));
    } else {
      results.push_back(sums[next_sum++].to(at::kFloat).div_(count));
    }
  }
  if (needs_recording(tensors)) {
    record_linear("pmean", tensors, results,
                  [place, site](Tensors cotangents) { return pmean(place, std::move(cotangents), site); });
  }
  return results;
}

Tensors pmax(const AxisPlace& place, Tensors tensors, Site site) {
  return extreme("pmax", ReduceOp::kMax, place, tensors, site);
}

Tensors pmin(const AxisPlace& place, Tensors tensors, Site site) {
  return extreme("pmin", ReduceOp::kMin, place, tensors, site);
}

}  // namespace detail
}  // namespace brigade::lax
