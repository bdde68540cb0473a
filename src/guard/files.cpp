#include "guard/files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "brigade/base/error.h"

namespace brigade::guard {
namespace {

constexpr std::size_t kPiece = std::size_t{1} << 20;
constexpr mode_t kOwnerOnly = 0600;

void write_all(const Folder& folder, const std::string& name, const Descriptor& file,
               std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t count = folder.calls().write(file.number(), bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) folder.fail(name, "cannot be written", errno);
    if (count == 0) folder.fail(name, "cannot be written", ENOSPC);
    bytes = bytes.subspan(static_cast<std::size_t>(count));
  }
}

std::uint64_t size_of(const Folder& folder, const std::string& name, const Descriptor& file) {
  struct stat status = {};
  if (::fstat(file.number(), &status) != 0) folder.fail(name, "cannot be examined", errno);
  return static_cast<std::uint64_t>(status.st_size);
}

void read_pieces(const Folder& folder, const std::string& name, const Descriptor& file, const data::ByteSink& sink) {
  std::vector<std::byte> piece(
      static_cast<std::size_t>(std::min<std::uint64_t>(kPiece, size_of(folder, name, file) + 1)));
  while (true) {
    const ssize_t count = folder.calls().read(file.number(), piece.data(), piece.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) folder.fail(name, "cannot be read", errno);
    if (count == 0) return;
    sink(std::span(piece).first(static_cast<std::size_t>(count)));
  }
}

}  // namespace

FileRecord write_file(const Folder& folder, const std::string& name, const Producer& produce) {
  Recorder written;
  {
    Descriptor file = folder.open_file(name, O_WRONLY | O_CREAT | O_EXCL, kOwnerOnly);
    produce([&](std::span<const std::byte> bytes) {
      write_all(folder, name, file, bytes);
      written.add(bytes);
    });
    // A flush that failed is not tried again: the kernel may have dropped what it could not write.
    if (folder.calls().fsync(file.number()) != 0) folder.fail(name, "cannot be flushed to the disk", errno);
    // What is clean leaves memory, so that reading it back asks the disk. Only a hint, so its result does not matter.
    (void)::posix_fadvise(file.number(), 0, 0, POSIX_FADV_DONTNEED);
    if (file.close() != 0) folder.fail(name, "cannot be closed", errno);
  }
  const FileRecord record = written.record();
  Recorder found;
  read_file(folder, name, record.bytes, [&](std::span<const std::byte> bytes) { found.add(bytes); });
  require_same(folder, name, found.record(), record);
  return record;
}

void read_file(const Folder& folder, const std::string& name, std::uint64_t bytes, const data::ByteSink& sink) {
  const Descriptor file = folder.open_file(name, O_RDONLY);
  if (const std::uint64_t size = size_of(folder, name, file); size != bytes) {
    throw DataError(fmt::format("{}: has {} bytes, where {} were written. It is damaged: use another checkpoint.",
                                folder.path_of(name), size, bytes));
  }
  read_pieces(folder, name, file, sink);
}

std::string read_text(const Folder& folder, const std::string& name, std::uint64_t limit) {
  const Descriptor file = folder.open_file(name, O_RDONLY);
  std::string text;
  if (const std::uint64_t size = size_of(folder, name, file); size > limit) {
    throw DataError(fmt::format("{}: has {} bytes, above the limit of {}. It is damaged: use another checkpoint.",
                                folder.path_of(name), size, limit));
  }
  read_pieces(folder, name, file, [&](std::span<const std::byte> bytes) {
    if (text.size() + bytes.size() > limit)
      throw DataError(fmt::format("{}: grows while it is read.", folder.path_of(name)));
    text.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  });
  return text;
}

void require_same(const Folder& folder, const std::string& name, const FileRecord& found, const FileRecord& expected) {
  if (found == expected) return;
  throw DataError(
      fmt::format("{}: what is read of it ({} bytes, digest {:016x}) is not what was written ({} bytes, digest "
                  "{:016x}). It is damaged: use another checkpoint, and check the disk.",
                  folder.path_of(name), found.bytes, found.digest, expected.bytes, expected.digest));
}

}  // namespace brigade::guard
