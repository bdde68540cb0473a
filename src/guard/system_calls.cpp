#include "guard/system_calls.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>

namespace brigade::guard {

int SystemCalls::open(int folder, const char* name, int flags, mode_t mode) {
  return ::openat(folder, name, flags, mode);
}
ssize_t SystemCalls::read(int file, void* bytes, std::size_t size) { return ::read(file, bytes, size); }
ssize_t SystemCalls::write(int file, const void* bytes, std::size_t size) { return ::write(file, bytes, size); }
int SystemCalls::fsync(int file) { return ::fsync(file); }
int SystemCalls::close(int file) { return ::close(file); }
int SystemCalls::rename(int folder, const char* from, const char* to) { return ::renameat(folder, from, folder, to); }
int SystemCalls::exchange(int folder, const char* one, const char* other) {
  return ::renameat2(folder, one, folder, other, RENAME_EXCHANGE);
}
int SystemCalls::mkdir(int folder, const char* name, mode_t mode) { return ::mkdirat(folder, name, mode); }
int SystemCalls::unlink(int folder, const char* name, int flags) { return ::unlinkat(folder, name, flags); }

SystemCalls& system_calls() {
  static SystemCalls calls;
  return calls;
}

}  // namespace brigade::guard
