// Replicas' parameters as views of flat buffers.
#pragma once

#include <memory>
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

  // Puts right what a program did to parameters since the last step. Values that were loaded into the first replica, such as
  // by torch::load, are taken over by all. Throws InvalidArgument for a dtype or shape that was changed, and for values that
  // were put into another replica than the first.
  void refresh(std::vector<Replica>& replicas);

 private:
  const Layout& layout_;
  std::vector<Flat> flats_;
};

// The tensors that are trained, for a Layout. Throws InvalidArgument when there is none.
std::vector<Layout::Entry> entries_of(const Replica& replica);

}  // namespace brigade::training
