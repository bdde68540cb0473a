// Draws from distributions: bits, uniform, integers, coin flips, normal and its relatives, categories.
//
// Each gives a new CPU tensor of `shape`, row-major; move it with .to(device). Element i depends on the key and on i
// alone: not on the shape, the number of threads, the width of the processor's vectors, or how many elements are drawn.
// Large draws use the calling thread's intra-op threads (at::set_num_threads).
//
// `dtype` is at::kFloat or at::kDouble; for another floating type draw floats and convert. A value of one is not the
// rounded value of the other: they use 32 and 64 bits of the generator.
//
// All throw ShapeError for a negative size and InvalidArgument for a parameter or dtype that cannot be used. They are
// named after jax.random's, and give its numbers: bits, integers, uniforms and coin flips exactly, what goes through a
// logarithm or the inverse error function to about 1e-6.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>

#include "brigade/random/key.h"

namespace brigade::random {

// Random bits, `width` (8, 16, 32 or 64) to an element. 8 come as kByte; libtorch has no wider unsigned type that all
// its versions know, so 16, 32 and 64 come as patterns in kShort, kInt and kLong.
at::Tensor bits(Key key, at::IntArrayRef shape, int width = 32);

// Uniform on [low, high); all `low` when they are equal. Values are multiples of (high - low) / 2^23 (2^52 for kDouble)
// from `low`, rounded once, and rounding may reach `high` when the interval is far from 0.
at::Tensor uniform(Key key, at::IntArrayRef shape, double low = 0.0, double high = 1.0,
                   at::ScalarType dtype = at::kFloat);

// Integers on [low, high) as kInt; all `low` when high <= low, as in JAX. Bounds must fit 32 bits (high may be 2^31).
// One value is more likely than another by a factor of at most 1 + s / 2^64 for a span s up to 2^16, and 1 + s / 2^32
// above, where JAX's arithmetic drops half of the bits.
at::Tensor randint(Key key, at::IntArrayRef shape, std::int64_t low, std::int64_t high);

// kBool, true with probability `p` (rounded to a float, then up to a multiple of 2^-23).
at::Tensor bernoulli(Key key, double p, at::IntArrayRef shape);

// Standard normal, as sqrt(2) * erfinv(uniform on (-1, 1)); M. Giles, "Approximating the erfinv function", GPU
// Computing Gems, 2011. Floats lie within 5.5 of 0, doubles within 8.3.
at::Tensor normal(Key key, at::IntArrayRef shape, at::ScalarType dtype = at::kFloat);

// Standard normal given that it lies in (low, high); either may be infinite. Meant for bounds that leave some mass: in
// float, bounds beyond about 5 on one side give few distinct values, and beyond about 3 JAX's values differ in the
// fifth digit, as its erf of the bound is not correctly rounded. Throws InvalidArgument unless low < high.
at::Tensor truncated_normal(Key key, double low, double high, at::IntArrayRef shape, at::ScalarType dtype = at::kFloat);

// Exponential of rate 1: -log1p(-uniform).
at::Tensor exponential(Key key, at::IntArrayRef shape, at::ScalarType dtype = at::kFloat);

// Standard Gumbel: -log(-log(uniform on (0, 1))).
at::Tensor gumbel(Key key, at::IntArrayRef shape, at::ScalarType dtype = at::kFloat);

// Indices (kLong) along the last axis of `logits` [..., categories], each with probability softmax(logits), by the
// Gumbel-max trick. The result has the shape of `logits` without its last axis, or `shape`, which ends in sizes that
// those broadcast to: {25, batch} draws 25 for each row of logits [batch, categories]. Throws ShapeError for a scalar,
// for no categories, or for a `shape` that does not fit.
at::Tensor categorical(Key key, const at::Tensor& logits);
at::Tensor categorical(Key key, const at::Tensor& logits, at::IntArrayRef shape);

}  // namespace brigade::random
