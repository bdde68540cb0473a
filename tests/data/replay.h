// What a fuzz target checks, on a corpus, and on every truncation and many changes of one byte of its files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>

#include "data/files.h"

namespace brigade::data {

using FuzzTarget = int (*)(const std::uint8_t* data, std::size_t size);

inline void replay(FuzzTarget target, const Bytes& bytes, std::size_t size) {
  // A copy of exactly this size, so that AddressSanitizer sees a read behind its end.
  const Bytes exact(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size));
  target(reinterpret_cast<const std::uint8_t*>(exact.data()), exact.size());
}

// A broken promise of the target's ends the process. Large files are replayed as they are only.
inline void replay_corpus(FuzzTarget target, const std::filesystem::path& folder) {
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    Bytes bytes = read_file(entry.path());
    replay(target, bytes, bytes.size());
    if (bytes.size() > 4096) continue;
    for (std::size_t size = 0; size < bytes.size(); ++size) replay(target, bytes, size);
    for (std::byte& byte : bytes) {
      for (const int change : {0x01, 0x80, 0xff}) {
        byte ^= static_cast<std::byte>(change);
        replay(target, bytes, bytes.size());
        byte ^= static_cast<std::byte>(change);
      }
    }
  }
}

}  // namespace brigade::data
