// Replicas' parameters as views of flat buffers.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "brigade/train/replica.h"
#include "layout.h"

namespace brigade::training {

// Where each replica's parameters lie: in one buffer for all, or in one each.
class Binding {
 public:
  enum class Copies { kOne, kEach };

  // All replicas become equal to the first: parameters, frozen ones and buffers. Throws InvalidArgument, with the first
  // difference, when replicas have different tensors.
  Binding(const Layout& layout, std::vector<Replica>& replicas, Copies copies);

  const Flat& of(std::size_t replica) const noexcept { return flats_[flats_.size() == 1 ? 0 : replica]; }
  bool is_shared() const noexcept { return flats_.size() == 1; }
  std::span<const Flat> copies() const noexcept { return flats_; }

  // Puts right what a program did to parameters since the last step, and returns the numbers of those that it did something
  // to. Values that were loaded or written into the first replica are taken over by all. Throws InvalidArgument for a dtype
  // or shape that was changed, and for values that are in another replica and not in the first.
  std::vector<std::size_t> refresh(std::vector<Replica>& replicas);

  // The step has written the parameters of replica `r`. Autograd then refuses a backward through values that are gone.
  void mark_written(Replica& replica, std::size_t r);

 private:
  bool take_over(Replica& first, std::size_t parameter);
  void require_same(const Replica& replica, std::size_t r, std::size_t parameter) const;

  const Layout& layout_;
  std::vector<Flat> flats_;
  std::vector<std::vector<std::uint32_t>>
      versions_;  // [replica][parameter]: the last that a step, or refresh(), has seen
};

// The tensors that are trained, for a Layout. Throws InvalidArgument when there is none.
std::vector<Layout::Entry> entries_of(const Replica& replica);

}  // namespace brigade::training
