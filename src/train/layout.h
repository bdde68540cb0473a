// Where every trainable tensor lies in a flat buffer: names, offsets, and the blocks that anything summed over elements is
// made of.
//
// The same layout serves parameters, gradients and each buffer of optimizer state. Tensors begin at multiples of 64 bytes,
// in the order of registration; what lies between them is zero. A block is 4,096 elements of one tensor, counted from its
// start, or what is left at its end; blocks are numbered through all tensors. Whatever divides the buffer among devices does
// it between blocks, so the number of devices shows in no sum.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace brigade::training {

struct Segment {
  std::string name;
  std::vector<std::int64_t> sizes;
  std::vector<std::int64_t> strides;  // dense: those of the parameter, or of a contiguous tensor
  at::ScalarType dtype = at::kFloat;
  std::size_t offset = 0;  // bytes
  std::size_t elements = 0;
  std::size_t bytes = 0;
  std::size_t first_block = 0;
  std::size_t blocks = 0;
};

// Blocks [begin, end) of all.
struct BlockRange {
  std::size_t begin = 0;
  std::size_t end = 0;
};

// Elements [begin, end) of one segment.
struct Part {
  std::size_t segment = 0;
  std::size_t begin = 0;
  std::size_t end = 0;
  std::size_t first_block = 0;  // the one that begins at `begin`
};

class Layout {
 public:
  struct Entry {
    std::string name;
    at::Tensor like;
  };

  // Throws InvalidArgument, naming the tensor, for what cannot be trained: another dtype than float32 or float64, no dense
  // CPU memory.
  explicit Layout(const std::vector<Entry>& tensors);

  const std::vector<Segment>& segments() const noexcept { return segments_; }
  std::size_t bytes() const noexcept { return bytes_; }
  std::size_t blocks() const noexcept { return blocks_; }

  // The share of participant `index` of `count`: as many blocks as the others have, or one more.
  BlockRange share(std::size_t index, std::size_t count) const noexcept {
    return {.begin = index * blocks_ / count, .end = (index + 1) * blocks_ / count};
  }

  // What a range has of each segment, in order.
  std::vector<Part> parts(BlockRange range) const;

 private:
  std::vector<Segment> segments_;
  std::size_t bytes_ = 0;
  std::size_t blocks_ = 0;
};

// One buffer of that layout, all zeros at first.
class Flat {
 public:
  explicit Flat(const Layout& layout);

  // Segment `index` as a tensor of its shape and strides, in this memory.
  at::Tensor view(std::size_t index) const;

  std::byte* at(std::size_t segment) const { return bytes() + layout_->segments()[segment].offset; }
  std::byte* bytes() const { return static_cast<std::byte*>(memory_.data_ptr()); }

 private:
  const Layout* layout_;  // outlives it
  at::Tensor memory_;     // bytes
};

struct NamedFlat {
  std::string_view name;
  const Flat* flat;
};

}  // namespace brigade::training
