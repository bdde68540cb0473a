#include "brigade/random/key.h"

#include <fmt/format.h>

#include <limits>

#include "brigade/base/error.h"

namespace brigade::random {

std::vector<Key> split(Key key, std::int64_t n) {
  if (n < 0) {
    throw InvalidArgument(fmt::format("random::split: cannot make {} keys; ask for 0 or more", n));
  }
  std::vector<Key> keys(static_cast<std::size_t>(n));
  for (std::size_t i = 0; i < keys.size(); ++i) keys[i] = split_at(key, i);
  return keys;
}

Key fold_in(Key key, std::int64_t data) {
  // Larger numbers would repeat the key of a smaller one, which is the mistake that keys are there to prevent.
  if (data < 0 || data > std::numeric_limits<std::uint32_t>::max()) {
    throw InvalidArgument(
        fmt::format("random::fold_in: data is {}, but only 32 bits enter the key; give a number from 0 "
                    "to 4294967295, and fold in a larger one in two parts",
                    data));
  }
  return split_at(key, static_cast<std::uint64_t>(data));
}

}  // namespace brigade::random
