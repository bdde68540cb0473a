// Sums over the elements of a tensor whose bits do not depend on who computes them.
//
// A tensor's elements fall into blocks of 4,096, counted from its first. A block's sum is taken in float64: lane j of 16
// adds the block's elements j, j + 16, j + 32, ... in order, and the lanes are combined by the tree T(0, 16); blocks are
// combined by T(0, n) as well. T(i, j) is i's number if j - i = 1 and else T(i, i + p) + T(i + p, j), p the largest power
// of two below j - i. So neither the processor's vector width shows, nor owners, slices, buckets or the number of
// devices, as long as slices are cut at borders of blocks.
//
//   std::vector<double> sums(optim::block_count(weight.size()));
//   optim::sums_of_squares(weight, sums);  // in parts too, each beginning at a border
//   const double norm = std::sqrt(optim::tree_sum(sums));
//
// A NaN or an infinity among the elements makes the sum of its block one of the two. So does a finite float64 whose square
// overflows; first_non_finite() tells them apart.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "brigade/optim/step.h"

namespace brigade::optim {

inline constexpr std::size_t kBlockElements = 4096;

// Blocks that `elements` elements from a border on fall into; the last may be short.
constexpr std::size_t block_count(std::size_t elements) { return (elements + kBlockElements - 1) / kBlockElements; }

// sums[b]: the sum of the squares of block b of `values`, whose first element lies at a border. Throws ShapeError unless
// there is one sum for each block.
void sums_of_squares(std::span<const float> values, std::span<double> sums);
void sums_of_squares(std::span<const double> values, std::span<double> sums);

// The same of a gradient as a rule would see it, prepared as step.h says, with its roundings. An infinity that is clipped
// still counts as one.
void sums_of_squares(std::span<const float> gradient, const Step& step, std::span<double> sums);
void sums_of_squares(std::span<const double> gradient, const Step& step, std::span<double> sums);

// T(0, n); 0 of none.
double tree_sum(std::span<const double> values);

// Position of the first NaN or infinity.
std::optional<std::size_t> first_non_finite(std::span<const float> values);
std::optional<std::size_t> first_non_finite(std::span<const double> values);

}  // namespace brigade::optim
