#include "guard/folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <system_error>

#include "brigade/base/error.h"

namespace brigade::guard {
namespace {

constexpr mode_t kOwnerOnly = 0700;
constexpr int kFolder = O_RDONLY | O_DIRECTORY | O_CLOEXEC;

std::string problem(std::string_view path, std::string_view what, int code) {
  if (code == ELOOP || code == ENOTDIR)
    return fmt::format("{}: {}: it is a symbolic link, or no folder. Remove it, or choose another folder.", path, what);
  if (code == ENOENT) return fmt::format("{}: {}: it does not exist.", path, what);
  return fmt::format("{}: {}: {}. Check the folder, its permissions and the space on its disk.", path, what,
                     std::generic_category().message(code));
}

// Makes the folders that are missing on the way. Their entries are flushed, as a checkpoint is not safer than its folder.
void make_folders(SystemCalls& calls, const std::filesystem::path& path) {
  std::filesystem::path done = path.is_absolute() ? "/" : ".";
  for (const std::filesystem::path& part : path.relative_path()) {
    if (part.empty() || part == ".") continue;
    const std::filesystem::path next = done / part;
    if (calls.mkdir(AT_FDCWD, next.c_str(), kOwnerOnly) == 0) {
      Folder::open(calls, done, Missing::kIsAnError).flush();
    } else if (errno != EEXIST && !std::filesystem::is_directory(next)) {
      throw DataError(problem(next.string(), "cannot be made", errno));
    }
    done = next;
  }
}

}  // namespace

Folder Folder::open(SystemCalls& calls, const std::filesystem::path& path, Missing missing) {
  const std::filesystem::path folder = path.empty() ? "." : path;
  int number = calls.open(AT_FDCWD, folder.c_str(), kFolder, 0);
  if (number < 0 && errno == ENOENT && missing == Missing::kIsMade) {
    make_folders(calls, folder);
    number = calls.open(AT_FDCWD, folder.c_str(), kFolder, 0);
  }
  if (number < 0) throw DataError(problem(folder.string(), "cannot be opened as a folder", errno));
  return {calls, folder.string(), number};
}

Folder Folder::child(const std::string& name) const {
  const int opened = calls_->open(number(), name.c_str(), kFolder | O_NOFOLLOW, 0);
  if (opened < 0) fail(name, "cannot be opened as a folder", errno);
  return {*calls_, path_of(name), opened};
}

Descriptor Folder::open_file(const std::string& name, int flags, mode_t mode) const {
  // Without O_NONBLOCK, opening a pipe waits for its other end.
  const int opened = calls_->open(number(), name.c_str(), flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, mode);
  if (opened < 0) fail(name, (flags & O_CREAT) != 0 ? "cannot be created" : "cannot be opened", errno);
  Descriptor file(*calls_, opened);
  struct stat status = {};
  if (::fstat(opened, &status) != 0) fail(name, "cannot be examined", errno);
  if (!S_ISREG(status.st_mode)) throw DataError(fmt::format("{}: it is no regular file. Remove it.", path_of(name)));
  return file;
}

void Folder::make(const std::string& name) const {
  if (calls_->mkdir(number(), name.c_str(), kOwnerOnly) != 0) fail(name, "cannot be made", errno);
}

void Folder::flush() const {
  // A flush that failed is not tried again: the kernel may have dropped what it could not write.
  if (calls_->fsync(number()) != 0) fail({}, "cannot be flushed to the disk", errno);
}

void Folder::rename(const std::string& from, const std::string& to) const {
  if (calls_->rename(number(), from.c_str(), to.c_str()) != 0) fail(to, "cannot take its name", errno);
}

void Folder::exchange(const std::string& fresh, const std::string& old, const std::string& aside) const {
  if (calls_->exchange(number(), fresh.c_str(), old.c_str()) == 0) return;
  if (errno != EINVAL && errno != ENOSYS && errno != EOPNOTSUPP) fail(old, "cannot be replaced", errno);
  rename(old, aside);
  try {
    rename(fresh, old);
  } catch (const DataError&) {
    (void)calls_->rename(number(), aside.c_str(), old.c_str());
    throw;
  }
  rename(aside, fresh);
}

bool Folder::remove(const std::string& name, const std::vector<std::string>& files) const noexcept {
  const int opened = calls_->open(number(), name.c_str(), kFolder | O_NOFOLLOW, 0);
  if (opened >= 0) {
    for (const std::string& file : files) calls_->unlink(opened, file.c_str(), 0);
    calls_->close(opened);
  }
  return calls_->unlink(number(), name.c_str(), AT_REMOVEDIR) == 0;
}

bool Folder::has(const std::string& name) const {
  struct stat status = {};
  return ::fstatat(number(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0;
}

std::vector<std::string> Folder::names() const {
  const int again = ::openat(number(), ".", kFolder);
  const std::unique_ptr<DIR, int (*)(DIR*)> stream(again < 0 ? nullptr : ::fdopendir(again), ::closedir);
  if (!stream) {
    const int code = errno;
    if (again >= 0) ::close(again);
    fail({}, "cannot be listed", code);
  }
  std::vector<std::string> names;
  while (true) {
    errno = 0;
    const dirent* const entry = ::readdir(stream.get());
    if (entry == nullptr) break;
    names.emplace_back(entry->d_name);
  }
  if (errno != 0) fail({}, "cannot be listed", errno);
  std::sort(names.begin(), names.end());
  return names;
}

std::string Folder::path_of(std::string_view name) const {
  return name.empty() ? path_ : (std::filesystem::path(path_) / name).string();
}

void Folder::fail(std::string_view name, std::string_view what, int code) const {
  throw DataError(problem(path_of(name), what, code));
}

}  // namespace brigade::guard
