#include "data/file_sink.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <system_error>
#include <utility>

#include "data/errors.h"

namespace brigade::data {
namespace {

// The entry of a file in its folder is on the disk when the folder is. 0, or what went wrong.
int flush_folder(const std::filesystem::path& folder) {
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return errno;
  const int code = ::fsync(descriptor) != 0 ? errno : 0;
  ::close(descriptor);
  return code;
}

}  // namespace

FileSink::FileSink(const std::filesystem::path& path) : path_(path), partial_(path.string() + ".partial-XXXXXX") {
  descriptor_ = ::mkostemp(partial_.data(), O_CLOEXEC);
  if (descriptor_ < 0) fail("cannot be created", errno);
}

FileSink::~FileSink() {
  if (descriptor_ >= 0) ::close(descriptor_);
  if (!partial_.empty()) ::unlink(partial_.c_str());
}

void FileSink::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(descriptor_, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail("cannot be written", errno);
    bytes = bytes.subspan(static_cast<std::size_t>(count));
  }
}

void FileSink::commit() {
  // A flush that failed is not tried again: the kernel may have dropped what it could not write.
  if (::fsync(descriptor_) != 0) fail("cannot be flushed to the disk", errno);
  if (::close(std::exchange(descriptor_, -1)) != 0) fail("cannot be closed", errno);
  if (std::rename(partial_.c_str(), path_.c_str()) != 0) fail("cannot take its name", errno);
  partial_.clear();
  if (const int code = flush_folder(path_.has_parent_path() ? path_.parent_path() : "."); code != 0) {
    fail("was written, but its folder cannot be flushed to the disk", code);
  }
}

void FileSink::fail(const char* what, int code) const {
  refuse(path_.string(), fmt::format("{}: {}. Check the folder, its permissions and the space on its disk.", what,
                                     std::generic_category().message(code)));
}

}  // namespace brigade::data
