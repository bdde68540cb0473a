// The digest by which bytes are told apart: XXH3 with 64 bits (https://xxhash.com), the same number on every machine.
//
//   Digest digest;
//   digest.add(header);
//   digest.add(data);
//   record(digest.value());   // digest_of(header and data together)
//
// It finds damage. It does not prove who wrote something: other bytes with the same digest can be made on purpose.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace brigade {

class Digest {
 public:
  Digest();
  ~Digest();
  Digest(Digest&&) noexcept;
  Digest& operator=(Digest&&) noexcept;

  // The next bytes; how they are cut does not show.
  void add(std::span<const std::byte> bytes);

  // Of all that was added.
  std::uint64_t value() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

std::uint64_t digest_of(std::span<const std::byte> bytes);

}  // namespace brigade
