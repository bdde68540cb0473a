// What a program has to give, by a plain loop over devices with torch's own operators.
#pragma once

#include <numeric>

#include "program.h"
#include "support/tree_sum.h"

namespace brigade::programs {

// The plain loop: what rank `rank` gets of one leaf, given every rank's, and where ranks stand on the axis.
namespace plain {

// Sums are taken in this dtype and rounded once.
inline torch::ScalarType sum_type(torch::ScalarType type) {
  if (type == torch::kBool) return torch::kInt;
  return type == torch::kHalf || type == torch::kBFloat16 ? torch::kFloat : type;
}

inline bool is_integral(torch::ScalarType type) { return c10::isIntegralType(type, /*includeBool=*/true); }

inline Tensors converted(const Tensors& values, torch::ScalarType type) {
  Tensors all;
  for (const torch::Tensor& value : values) all.push_back(value.to(type));
  return all;
}

inline torch::Tensor sum(const Tensors& values) {
  const torch::ScalarType type = values[0].scalar_type();
  return tree_sum(converted(values, sum_type(type))).to(type == torch::kBool ? torch::kInt : type);
}

// Complex numbers by parts.
inline torch::Tensor quotient(const torch::Tensor& sum, double count) {
  const torch::Tensor parts = sum.is_complex() ? torch::view_as_real(sum) : sum;
  const torch::Tensor divided = parts / torch::full({}, count, parts.options());
  return sum.is_complex() ? torch::view_as_complex(divided) : divided;
}

inline torch::Tensor mean(const Tensors& values) {
  const torch::ScalarType type = values[0].scalar_type();
  const auto count = static_cast<double>(values.size());
  if (is_integral(type))
    return (tree_sum(converted(values, torch::kLong)).to(torch::kDouble) / count).to(torch::kFloat);
  return quotient(tree_sum(converted(values, sum_type(type))), count).to(type);
}

inline torch::Tensor weighted_mean(const Tensors& values, const std::vector<double>& weights) {
  const torch::ScalarType type = values[0].scalar_type();
  const torch::ScalarType wide = is_integral(type) ? torch::kDouble : sum_type(type);
  Tensors products;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const torch::Tensor value = values[i].to(wide);
    const torch::Tensor parts = value.is_complex() ? torch::view_as_real(value) : value;
    const torch::Tensor product = parts * torch::full({}, weights[i], parts.options());
    products.push_back(value.is_complex() ? torch::view_as_complex(product) : product);
  }
  return quotient(tree_sum(products), tree_sum(weights)).to(is_integral(type) ? torch::kFloat : type);
}

inline torch::Tensor extreme(const Tensors& values, bool largest) {
  torch::Tensor result = values[0];
  for (const torch::Tensor& value : values) {
    result = largest ? torch::maximum(result, value) : torch::minimum(result, value);
  }
  return result;
}

inline torch::Tensor index_of_extreme(const Tensors& values, const std::vector<int>& indices, bool largest) {
  const torch::Tensor best = extreme(values, largest);
  torch::Tensor index = torch::full_like(best, 1000, torch::kInt);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const torch::Tensor holds = values[i].eq(best).logical_or(values[i].ne(values[i]));
    index = torch::where(holds, torch::minimum(index, torch::full_like(index, indices[i])), index);
  }
  return index;
}

inline torch::Tensor part(const torch::Tensor& whole, std::int64_t dim, bool tiled, std::int64_t count,
                          std::int64_t rank) {
  if (!tiled) return whole.select(dim, rank);
  const std::int64_t size = whole.size(dim) / count;
  return whole.slice(dim, rank * size, (rank + 1) * size);
}

inline torch::Tensor together(const Tensors& parts, std::int64_t dim, bool tiled) {
  return tiled ? torch::cat(parts, dim) : torch::stack(parts, dim);
}

inline torch::Tensor leaf(const Step& step, const Tensors& values, const std::vector<double>& weights,
                          const std::vector<int>& indices, std::size_t rank) {
  const auto count = static_cast<std::int64_t>(values.size());
  const auto own = static_cast<std::int64_t>(rank);
  const auto exchanged = [&](std::int64_t split, std::int64_t concat, bool tiled) {
    Tensors parts;
    for (const torch::Tensor& value : values) parts.push_back(part(value, split, tiled, count, own));
    return together(parts, concat, tiled);
  };
  switch (step.op) {
    case Op::kPsum:
      return sum(values);
    case Op::kPmean:
      return mean(values);
    case Op::kWeightedPmean:
      return weighted_mean(values, weights);
    case Op::kPmax:
    case Op::kPmin:
      return extreme(values, step.op == Op::kPmax);
    case Op::kPargmax:
    case Op::kPargmin:
      return index_of_extreme(values, indices, step.op == Op::kPargmax);
    case Op::kAllGather:
      return together(values, step.dim, step.tiled);
    case Op::kPsumScatter:
      return part(sum(values), step.dim, step.tiled, count, own);
    case Op::kAllToAll:
      return exchanged(step.dim, step.concat, step.tiled);
    case Op::kPswapaxes:
      return exchanged(step.dim, step.dim, false);
    case Op::kPpermute:
      for (const auto& [source, destination] : step.pairs) {
        if (destination == static_cast<int>(rank)) return values[static_cast<std::size_t>(source)];
      }
      return torch::zeros_like(values[rank]);
    case Op::kPshuffle:
      return values[static_cast<std::size_t>(step.perm[rank])];
    case Op::kPbroadcast:
      return values[static_cast<std::size_t>(step.source)];
  }
  return {};
}

}  // namespace plain

// What each device has to get: [device][leaf].
inline std::vector<Tensors> expected(const Grid& grid, const Step& step) {
  std::vector<Tensors> results;
  for (int device = 0; device < grid.devices(); ++device) {
    const std::vector<int> members = grid.members(device, step.axis);
    std::vector<int> group(members.size());
    std::iota(group.begin(), group.end(), 0);
    const int own = grid.rank(device, step.axis);
    for (const std::vector<int>& candidate : step.groups) {
      if (std::find(candidate.begin(), candidate.end(), own) != candidate.end()) group = candidate;
    }
    const auto rank = static_cast<std::size_t>(std::find(group.begin(), group.end(), own) - group.begin());
    Tensors& leaves = results.emplace_back();
    for (std::size_t k = 0; k < step.inputs[0].size(); ++k) {
      Tensors values;
      std::vector<double> weights;
      for (const int r : group) {
        const auto d = static_cast<std::size_t>(members[static_cast<std::size_t>(r)]);
        values.push_back(step.inputs[d][k]);
        weights.push_back(step.weights[d]);
      }
      leaves.push_back(plain::leaf(step, values, weights, group, rank));
    }
  }
  return results;
}

}  // namespace brigade::programs
