// Files of a checkpoint, written and read with their size and digest.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "brigade/base/digest.h"
#include "brigade/data/files.h"
#include "guard/folder.h"
#include "guard/manifest.h"

namespace brigade::guard {

// Gives a file's bytes, in order.
using Producer = std::function<void(const data::ByteSink&)>;

// Takes bytes as they pass and says what they were.
class Recorder {
 public:
  void add(std::span<const std::byte> bytes) {
    digest_.add(bytes);
    bytes_ += bytes.size();
  }
  FileRecord record() const { return {.bytes = bytes_, .digest = digest_.value()}; }

 private:
  Digest digest_;
  std::uint64_t bytes_ = 0;
};

// A new file of mode 0600, on the disk when this returns: written, flushed, closed, and read back with the digest of what was
// written. Throws DataError, and what `produce` throws; a file may be left then.
FileRecord write_file(const Folder& folder, const std::string& name, const Producer& produce);

// The bytes of a file to `sink`, in pieces. Throws DataError when its size is not `bytes`, before the first of them.
void read_file(const Folder& folder, const std::string& name, std::uint64_t bytes, const data::ByteSink& sink);

// Of a file that may be anything: at most `limit` bytes. Throws DataError when it has more.
std::string read_text(const Folder& folder, const std::string& name, std::uint64_t limit);

// Throws DataError unless the file is the one recorded.
void require_same(const Folder& folder, const std::string& name, const FileRecord& found, const FileRecord& expected);

}  // namespace brigade::guard
