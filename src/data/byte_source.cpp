#include "data/byte_source.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <system_error>

#include "data/errors.h"
#include "data/gzip_source.h"

namespace brigade::data {
namespace {

std::string system_message(int code) { return std::generic_category().message(code); }

std::string_view kind_of(mode_t mode) {
  if (S_ISDIR(mode)) return "a directory";
  if (S_ISFIFO(mode)) return "a pipe";
  if (S_ISSOCK(mode)) return "a socket";
  return "a device";
}

}  // namespace

std::size_t MemorySource::read(std::span<std::byte> out) {
  const std::size_t count = std::min(out.size(), rest_.size());
  std::copy_n(rest_.begin(), count, out.begin());
  rest_ = rest_.subspan(count);
  return count;
}

FileSource::FileSource(const std::filesystem::path& path, SymbolicLinks links) : ByteSource(path.string()) {
  // Without O_NONBLOCK, opening a pipe waits for its writer.
  const int no_follow = links == SymbolicLinks::kRefuse ? O_NOFOLLOW : 0;
  descriptor_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | no_follow);
  if (descriptor_ < 0) {
    const int code = errno;
    if (code == ELOOP && no_follow != 0) refuse(name(), "is a symbolic link. Give the file itself.");
    refuse(name(), code == ENOENT ? "there is no such file. Check the path."
                                  : fmt::format("cannot be opened: {}. Check its permissions.", system_message(code)));
  }
  struct stat status = {};
  const int failed = ::fstat(descriptor_, &status) != 0 ? errno : 0;
  if (failed != 0 || !S_ISREG(status.st_mode)) {
    ::close(descriptor_);
    refuse(name(), failed != 0 ? fmt::format("cannot be examined: {}.", system_message(failed))
                               : fmt::format("is {}. Give a regular file.", kind_of(status.st_mode)));
  }
  size_ = static_cast<std::uint64_t>(status.st_size);
}

FileSource::~FileSource() { ::close(descriptor_); }

std::size_t FileSource::read(std::span<std::byte> out) {
  std::size_t filled = 0;
  while (filled < out.size()) {
    const ssize_t count = ::read(descriptor_, out.data() + filled, out.size() - filled);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) refuse(name(), fmt::format("cannot be read: {}.", system_message(errno)));
    if (count == 0) break;
    filled += static_cast<std::size_t>(count);
  }
  delivered_ += filled;
  return filled;
}

void FileSource::rewind() {
  if (::lseek(descriptor_, 0, SEEK_SET) != 0) refuse(name(), fmt::format("cannot be read: {}.", system_message(errno)));
  delivered_ = 0;
}

std::unique_ptr<ByteSource> open_bytes(const std::filesystem::path& path) {
  auto file = std::make_unique<FileSource>(path);
  std::array<std::byte, 2> start = {};
  file->read(start);
  file->rewind();
  if (!is_gzip(start)) return file;
  return std::make_unique<GzipSource>(std::move(file));
}

}  // namespace brigade::data
