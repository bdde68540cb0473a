// One entry for each leaf of a step, which may be given in several parts whose leaves follow one another.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace brigade::training {

template <class Entry>
class PerLeaf {
 public:
  // New entries for so many leaves, after those of the parts that were kept. Others give way.
  void open(std::int64_t leaves) {
    entries_.resize(kept_);
    entries_.resize(kept_ + static_cast<std::size_t>(leaves));
  }

  // Counted from the first leaf of the part.
  Entry& operator[](std::int64_t leaf) { return entries_[kept_ + static_cast<std::size_t>(leaf)]; }

  // All entries are of a part of the step; or none is any more, and they last until the next open().
  void keep_part() noexcept { kept_ = entries_.size(); }
  void drop_parts() noexcept { kept_ = 0; }

  std::int64_t kept() const noexcept { return static_cast<std::int64_t>(kept_); }
  const std::vector<Entry>& all() const noexcept { return entries_; }

 private:
  std::vector<Entry> entries_;
  std::size_t kept_ = 0;
};

}  // namespace brigade::training
