// Proof that an update begins with what the last one left in memory: parameters on every replica, and optimizer state.
//
// A block that is written is digested while it is in the cache. Before the next update every device digests its own copy of
// the parameters again (of a copy that all share, its share) and its share of the state, and compares. What differs was
// changed by nobody's step: a bit has flipped, or something writes where it should not.
//
// A block that differs is traced to the element when another copy still matches what was recorded, or when a single flipped
// bit explains it: all bits of the block are tried, until the digest is the recorded one. Either also says what was there.
#pragma once

#include <cstdint>
#include <optional>
#include <source_location>
#include <span>
#include <string>
#include <vector>

#include "layout.h"
#include "update.h"

namespace brigade::training {

class MemoryAudit {
 public:
  // `parameters`: one copy that all devices share, or one for each. All outlive it. Begins with what is there.
  MemoryAudit(const Layout& layout, std::span<const Flat> parameters, std::vector<NamedFlat> state,
              std::size_t devices);

  // Everything was written, alike in all copies.
  void record_all();

  // The program has written `segment` of the parameters, in all copies.
  void record(std::size_t segment);

  // On the device that has written `part` of `parameters` and of all state.
  void record(const Flat& parameters, const Part& part);

  // On every device, which updates `share`. Finds what differs; each device's findings are its own.
  void verify(std::size_t device, BlockRange share);

  // Whether no device has found anything. After a meeting.
  bool is_clean() const noexcept;

  // Blocks that differ, for people; the first says all that can be known of it.
  std::string describe() const;
  // The device of the first of them.
  int device() const;

  // Puts back what was there, for everything that was found. False, and nothing is changed, when that cannot be known of some.
  bool heal();

  // Takes what was found as what should be there.
  void accept();

  // Of all parameters and state, by what was recorded: per block, per tensor, per buffer. The number of devices does not show.
  std::uint64_t digest() const;

 private:
  struct Buffer {
    std::string name = {};  // empty for the parameters
    std::vector<const Flat*> copies = {};
    std::vector<std::uint64_t> digests = {};  // of blocks
  };

  // A block of one copy that differs.
  struct Finding {
    std::size_t buffer = 0;
    std::size_t copy = 0;
    Part block = {};
  };

  void record(Buffer& buffer, const Flat& copy, const Part& part);
  void verify(std::size_t device, std::size_t buffer, std::size_t copy, const Part& part);
  std::span<std::byte> bytes(const Finding& finding) const;
  std::optional<std::vector<std::byte>> what_was_there(const Finding& finding) const;

  const Layout& layout_;
  std::vector<Buffer> buffers_;                 // parameters, then state
  std::vector<std::vector<Finding>> findings_;  // of each device
};

}  // namespace brigade::training
