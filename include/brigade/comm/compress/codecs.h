// The codecs there are, and what they cost and lose.
//
// | codec      | bytes for n numbers                       | what arrives                                               |
// |------------|-------------------------------------------|------------------------------------------------------------|
// | none       | 4 n                                       | the same bits                                              |
// | fp16, bf16 | 2 n                                       | the nearest such number, ties to even                      |
// | int8       | n + 4 a block                             | a level of the block, above or below by chance             |
// | onebit     | n / 8 + 8 a block                         | the mean of those of its block with the same sign          |
// | topk       | 8 k, k = ratio n                          | the k largest, as they are, and zeros                      |
// | powersgd   | 4 r (rows + columns), for matrices        | a matrix of rank r near to it                              |
//
// Factories throw InvalidArgument for options that cannot be.
#pragma once

#include <cstddef>

#include "brigade/comm/compress/codec.h"

namespace brigade::compress {

// float32 as it is: what the others are compared with.
comm::Codec none();

// IEEE half precision: 11 bits from 6e-5 to 65504; beyond that it is an infinity, which a step does not survive unnoticed.
comm::Codec fp16();

// The upper half of float32: 8 bits, and float32's range.
comm::Codec bf16();

struct Int8Options {
  std::size_t block = 256;  // numbers that share a scale; a multiple of 64
};

// Levels -127 to 127 times the largest magnitude of the block / 127. A number between two levels becomes the upper one with the
// probability that makes the mean right (stochastic rounding; D. Alistarh et al., "QSGD", NIPS 2017), up to 2^-17 of a level, drawn
// from the key. Levels themselves, zero and the largest among them, stay as they are.
comm::Codec int8(Int8Options options = {});

struct OneBitOptions {
  std::size_t block = 512;  // numbers that share the two means; a multiple of 64
};

// One bit a number says whether it is below zero, and the means of those that are and those that are not stand for them. F. Seide
// et al., "1-bit stochastic gradient descent and its application to data-parallel distributed training of speech DNNs",
// Interspeech 2014, with blocks in place of columns.
comm::Codec onebit(OneBitOptions options = {});

struct TopKOptions {
  double ratio = 0.01;  // of the numbers, rounded up, that are sent; above 0, to 1
};

// The largest by magnitude, exactly; of equal ones those with the lowest index. A. Aji, K. Heafield, "Sparse communication for
// distributed gradient descent", EMNLP 2017. For tensors of fewer than 2^32 numbers.
comm::Codec topk(TopKOptions options = {});

struct PowerSgdOptions {
  std::size_t rank = 4;
};

// One step of power iteration: P = M Q with the Q of the step before, P orthonormal by Gram-Schmidt in the order of its columns,
// Q = M^T P; what arrives is P Q^T. T. Vogels, S. Karimireddy, M. Jaggi, "PowerSGD: practical low-rank gradient compression for
// distributed optimization", NeurIPS 2019. Q is the state; columns that are zero, as all are at first, are drawn from the key.
// Matrices that are no smaller so, and vectors, are sent as they are.
//
// In the paper participants share one Q, and P and Q are averaged among them, which works as both are linear in M. Here each
// contribution (a leaf's gradient) is encoded and decoded by itself, with a Q of its own, and decoded matrices are summed in
// float32, as with every other codec: the sum over L contributions has a rank up to L r, and is nearer to that of the gradients than
// the paper's.
comm::Codec powersgd(PowerSgdOptions options = {});

// `codec`, with what it lost in one encode added to the numbers of the next: all of it arrives in the end. The residual is the
// first numbers of the state, one for each number, and codec's own state follows. S. Karimireddy et al., "Error feedback fixes
// SignSGD and other gradient compression schemes", ICML 2019. Throws InvalidArgument around itself.
comm::Codec error_feedback(const comm::Codec& codec);

}  // namespace brigade::compress
