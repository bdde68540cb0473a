// How fast this machine's BLAS could take a perceptron's step, if nothing but its floating-point units counted.
#pragma once

#include <cstdint>

#include "support/team.h"

namespace brigade::bench {

// Additions and multiplications in the matrix products of one step of a 784-hidden-10 perceptron on `rows` rows: 2 m n k of
// each product of [m, k] and [k, n]. Forward has two, rows x 784 x hidden and rows x hidden x 10. Backward has both of these
// again for the gradients of the weights, and the second once more for the gradient of the hidden layer; the rows themselves
// need none. All the rest, which are biases, ReLU, cross-entropy, reduction and update, counts as nothing.
double mlp_flops(std::int64_t rows, std::int64_t hidden);

// Nanoseconds in which each core of the team does `flops` in products of large square matrices, all cores at once. Measured
// over about `calls` times as many.
double flop_nanoseconds(Team& team, double flops, int calls);

}  // namespace brigade::bench
