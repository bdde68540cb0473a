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

// Whether `tensor` is the only way to its memory, so that a result may take its place. Memory that libtorch did not
// allocate (from_blob) is somebody else's, and not resizable.
bool is_ours_alone(const at::Tensor& tensor) {
  return tensor.use_count() == 1 && tensor.has_storage() && tensor.storage().use_count() == 1 &&
         tensor.storage().resizable() && !tensor.requires_grad();
}

// Reduces all tensors in one meeting. Results are contiguous and have no graph. They take the memory of tensors that
// nobody else holds, else their own.
Tensors reduce(const char* name, comm::Reduction reduction, const AxisPlace& place, const Tensors& tensors, Site site) {
  Tensors inputs, results;
  std::vector<comm::Piece> pieces;
  inputs.reserve(tensors.size());
  results.reserve(tensors.size());
  pieces.reserve(tensors.size());
  std::string tag = name;
  for (const at::Tensor& tensor : tensors) {
    const bool in_place = is_ours_alone(tensor);
    at::Tensor in = plain(tensor, name, place, site);
    if (in.is_complex()) {
      if (reduction.op != ReduceOp::kSum) {
        throw InvalidArgument(fmt::format("{} of complex numbers, which have no order: reduce .abs() instead", name),
                              {.axis = place.axis->name(), .device = place.position, .site = site});
      }
      in = at::view_as_real(in);
    }
    const at::ScalarType type = reduced_as(in.scalar_type());
    if (type == in.scalar_type()) {
      inputs.push_back(std::move(in));
    } else {
      // Devices whose dtypes differ must not meet in the wider one.
      tag += std::string(" of ") + c10::toString(in.scalar_type());
      inputs.push_back(in.to(type));
    }
    const bool reuse = in_place && inputs.back().data_ptr() == tensor.data_ptr();
    results.push_back(reuse ? inputs.back() : at::empty_like(inputs.back()));
    pieces.push_back(piece(inputs.back(), results.back()));
  }
  place.group().all_reduce(reduction, pieces, {.tag = tag, .site = site});
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
  const auto count = static_cast<double>(place.axis->size());
  const bool recorded = needs_recording(tensors);
  const Tensors originals =
      recorded ? tensors : Tensors();  // a second handle would keep their memory from being reused
  // The reduction divides floating sums itself. Integers are summed exactly first, so a mixed tree takes two meetings.
  std::vector<at::ScalarType> types;
  Tensors floating, integral;
  for (at::Tensor& tensor : tensors) {
    types.push_back(tensor.scalar_type());
    (at::isIntegralType(types.back(), /*includeBool=*/true) ? integral : floating).push_back(std::move(tensor));
  }
  Tensors means, sums;
  if (!floating.empty()) means = reduce("pmean", {.op = ReduceOp::kSum, .divisor = count}, place, floating, site);
  if (!integral.empty()) sums = reduce("pmean", {.op = ReduceOp::kSum}, place, integral, site);

  Tensors results;
  auto next_mean = means.begin(), next_sum = sums.begin();
  for (const at::ScalarType type : types) {
    const bool integer = at::isIntegralType(type, /*includeBool=*/true);
    results.push_back(integer ? (next_sum++)->to(at::kFloat).div_(count) : (next_mean++)->to(type));
  }
  if (recorded) {
    record_linear("pmean", originals, results,
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
